"""A small training run to be interrupted: `python -m tests.training.interrupted_training FOLDER [resume] [slow]`.

It says each step on a line of its own; `slow` leaves time between steps to interrupt it.
"""

import signal
import sys
import time
from pathlib import Path

import equinox as eqx
import jax
from jax import numpy as jnp

import pfbr

SETTINGS = pfbr.TrainingSettings(
    steps=40,
    num_particles=16,
    length=2,
    batch=2,
    validate_every=2,
    validation_tasks=4,
    learning_rate=0.02,
    max_skipped=0.9,
)


class Spoilt(pfbr.models.GaussianMean):
    """A likelihood that is not a number for observations above a limit; without a limit, the mean of a Gaussian."""

    observation_std: float = 0.5
    limit: jax.Array = eqx.field(default_factory=lambda: jnp.asarray(jnp.inf))  # traced: one compilation for all

    def log_likelihood(self, x, observation):
        value = super().log_likelihood(x, observation)
        return jnp.where(observation[0] > self.limit, jnp.nan, value)


def train(folder: Path, *, resume: bool = False, slow: bool = False):
    def say(report):
        print("step", report.step, flush=True)
        if slow:
            time.sleep(0.5)

    operator, report = pfbr.fit(
        Spoilt(2),
        key=5,
        operator="paper",
        architecture={"width": 4, "steps": 1},
        settings=SETTINGS,
        checkpoint=folder / "run.checkpoint",
        resume=resume,
        progress=say,
    )
    pfbr.save(folder / "run.pfbr", operator)
    return operator, report


if __name__ == "__main__":
    from tests.training import interrupted_training  # the model then has the same name here as in a test

    # a shell switches SIGINT off for what it runs in the background; a user at a terminal has it
    signal.signal(signal.SIGINT, signal.default_int_handler)
    interrupted_training.train(Path(sys.argv[1]), resume="resume" in sys.argv, slow="slow" in sys.argv)
