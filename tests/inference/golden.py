"""One update or two of everything that updates, with explicit keys: what `test_golden` compares with its file."""

from functools import partial
from pathlib import Path

import equinox as eqx
import jax
import numpy as np

import pfbr
from pfbr import baselines
from pfbr.inference.collocation.method import collocation_operator
from pfbr.inference.corrected import Corrected
from pfbr.inference.pretrained.catalogue import load_shipped
from pfbr.models import GaussianMean, GaussianMixture, LinearDynamics, MiniBatch
from pfbr.models.simulate import simulate
from pfbr.paper.digits.model import LabelledRows

FILE = Path(__file__).parent / "golden.npz"
STAGES = 2
MIXTURE, LDS2, LDS10 = GaussianMixture(), LinearDynamics.random(0, 2), LinearDynamics.random(0, 10)
STILL = GaussianMean(dim=2, prior_std=1.0, observation_std=1.0)
SMALLER = {
    "kbr": baselines.KernelBayes(num_pairs=60),
    "kmcf": baselines.KernelFilter(num_pairs=60),
    "npv": baselines.NonparametricVI(components=8, steps=10, batch=4, capacity=4),
    "pmd": baselines.MirrorDescent(capacity=4),
}


def update(method, model, num_particles):
    """Points, log weights and log densities after `STAGES` observations."""
    observations = simulate(jax.random.key(7), model, STAGES).observations

    @eqx.filter_jit
    def go(method, model, observations):
        state = method.init(jax.random.key(1), model, num_particles)
        for i in range(STAGES):
            state, _ = method.update(jax.random.key(2 + i), model, state, observations[i])
        return method.particles(state)

    said = go(method, model, observations)
    return said.points, said.log_weights, said.log_density


def _shipped(name):
    package = "pfbr.inference.pretrained" if name in ("mixture", "static-2d") else "pfbr.paper.operators"
    operator = load_shipped(package, name)
    if name.startswith("digits"):
        batch = operator.observation_shape[0] if operator.observation_shape else 32
        model = MiniBatch(LabelledRows(operator.dim), batch)
    elif name.startswith("gaussian"):
        model = GaussianMean(dim=operator.dim, prior_std=1.0, observation_std=3.0)
    else:
        model = {"lds-2-paper": LDS2, "lds-10-paper": LDS10}.get(name, MIXTURE)
    return update(operator, model, 32)


def _rival(name):
    rival = baselines.REGISTRY[name]
    moving = name.startswith("aesmc") or rival.ready(STILL).unsupported(STILL) is not None
    model = LDS2 if moving else STILL
    return update(SMALLER.get(name) or baselines.make(name, model), model, 16)


SHIPPED = (
    "mixture",
    "static-2d",
    "digits",
    "digits-zeroed",
    *(f"gaussian-{d}-paper" for d in (2, 3, 5, 8)),
    "mixture-paper",
    "lds-2-paper",
    "lds-10-paper",
)
CASES = {
    **{f"shipped/{name}": partial(_shipped, name) for name in SHIPPED},
    "method/gaussian": lambda: update(pfbr.gaussian_operator(), LDS2, 32),
    "method/gaussian-logistic": lambda: update(pfbr.gaussian_operator(), LabelledRows(3), 32),
    "method/collocation": lambda: update(collocation_operator(), MIXTURE, 64),
    "method/corrected-never": lambda: update(Corrected(pfbr.gaussian_operator(), fallback="never"), LDS2, 32),
    "method/corrected-auto": lambda: update(Corrected(pfbr.pretrained("mixture")), MIXTURE, 64),
    "method/corrected-auto-history": lambda: update(Corrected(pfbr.gaussian_operator(), history=4), MIXTURE, 64),
    "method/corrected-always-moving": lambda: update(Corrected(pfbr.gaussian_operator(), fallback="always"), LDS2, 64),
    **{f"rival/{name}": partial(_rival, name) for name in baselines.REGISTRY},
}


def write() -> None:
    arrays = {}
    for name, case in CASES.items():
        for part, value in zip(("points", "log_weights", "log_density"), case(), strict=True):
            if value is not None:
                arrays[f"{name}/{part}"] = np.asarray(value, np.float32)
    np.savez_compressed(FILE, **arrays)


if __name__ == "__main__":
    write()
