"""How far the corrected evidence is from Kalman's, how often steps are flagged, and how well the flow runs backwards.

Run: python benchmarks/trust.py
"""

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

import pfbr
from pfbr.baselines import BootstrapSMC, OptimalSMC
from pfbr.likelihood import Likelihood
from pfbr.models import GaussianMean, LinearDynamics
from pfbr.online import trace
from pfbr.particles import equally_weighted
from pfbr.tasks import simulate
from pfbr.trusted import Trusted
from pfbr.truth import kalman

SEQUENCES, LENGTH, PARTICLES = 100, 25, 256


@eqx.filter_jit
def reports(method, model, observations):
    keys = jax.random.split(jax.random.key(1), SEQUENCES)
    return jax.lax.map(lambda i: trace(i[0], method, model, i[1], PARTICLES).info, (keys, observations))


def evidence(dim: int) -> None:
    model = LinearDynamics.random(0, dim)
    observations = jax.vmap(lambda k: simulate(k, model, LENGTH)[0])(jax.random.split(jax.random.key(0), SEQUENCES))
    exact = jax.jit(jax.vmap(lambda o: kalman(model, o)))(observations).log_evidence[:, -1]
    operator = pfbr.gaussian_operator()
    for name, method in {
        "reported (never)": Trusted(operator, repair="never"),
        "corrected (auto)": Trusted(operator),
        "corrected, strict": Trusted(operator, strict=True),
        "bootstrap SMC": BootstrapSMC(),
        "fully adapted SMC": OptimalSMC(),
    }.items():
        info = reports(method, model, observations)
        error = np.asarray(info["log_evidence_increment"].sum(1) - exact)
        flags = f"{100 * float(np.mean(info['flagged'])):.2f} %" if "flagged" in info else ""
        ratio = np.exp(np.clip(error, -50, 50))
        print(
            f"| {dim} | {name} | {error.mean():.4f} ± {error.std() / 10:.4f} | {error.var():.5f} | "
            f"{ratio.mean():.3f} ± {ratio.std() / 10:.3f} | {float(np.mean(info['ess'])) / PARTICLES:.2f} | {flags} |",
            flush=True,
        )


def backwards() -> None:
    model = GaussianMean(2, observation_std=1.0)
    points = jax.vmap(model.sample_prior)(jax.random.split(jax.random.key(0), 256))
    prior = equally_weighted(points, jax.vmap(model.log_prior)(points))
    likelihood = Likelihood(model, jnp.array([2.0, -1.0]))
    for steps in (2, 4, 8, 16, 32):
        operator = pfbr.gaussian_operator(steps=steps)
        moved = operator.move(jax.random.key(0), prior, likelihood)
        back = operator.move_back(
            points, jax.random.key(0), equally_weighted(moved.points, moved.log_density), likelihood
        )
        error = np.sqrt(np.mean((np.asarray(back.points) - np.asarray(points)) ** 2))
        print(
            f"| {steps} | {error:.1e} | {float(np.max(np.abs(back.log_density - prior.log_density))):.1e} |", flush=True
        )


if __name__ == "__main__":
    backwards()
    for dim in (2, 10):
        evidence(dim)
