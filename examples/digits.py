"""Eight or six? A logistic regression that learns batch by batch, and an operator that has seen other such tasks.

    python examples/digits.py --picture docs/images/gallery_digits.png

The images are MNIST's and come with the package (`src/pfbr/paper/digits/mnist68.txt` has source and licence). The whole
experiment, with seven rivals: docs/digits.md.
"""

import jax
import numpy as np
import pictures
from common import command_line

import pfbr
from pfbr.baselines import StreamingSVI
from pfbr.inference.pretrained.catalogue import load_shipped
from pfbr.paper.digits.rotations import digit_model
from pfbr.paper.digits.scoring import predict
from pfbr.paper.digits.tasks import unseen_streams

BATCH = 32


def main(batches: int = 40, tasks: int = 4, num_particles: int = 256, picture: str = "") -> dict:
    # each task turns the first two features by an angle of its own; (tasks, batches, 32, features and label)
    streams, others = unseen_streams(0, tasks, batches, batch=BATCH)
    model = digit_model(streams.shape[-1] - 2, BATCH)
    methods = {
        "learned over tasks": load_shipped("pfbr.paper.operators", "digits"),  # as it is: its prior is what it learned
        "training-free flow": pfbr.gaussian_operator(qmc=False),
        "streaming SVI": StreamingSVI(),
    }
    keys, shares = jax.random.split(jax.random.key(0), tasks), {}
    for name, method in methods.items():
        said = predict(keys, method, model, streams, others[:, :BATCH], num_particles)
        shares[name] = np.mean(said.predicted > np.log(0.5), axis=(0, 2))[1:]  # before the first, nobody knows anything
    figures = {name: f"after one batch {own[0]:.3f}, all {own.mean():.3f}" for name, own in shares.items()}
    if picture:
        pictures.digits(picture, shares)
    return figures


if __name__ == "__main__":
    command_line(main)
