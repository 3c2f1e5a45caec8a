"""The paper's measures of one stage: MMD² through kernels, errors of expectations, and SMC as it is often scored."""

from collections.abc import Sequence

import jax
from jax import numpy as jnp

from pfbr.judging.evaluate import Metric
from pfbr.metrics.integral_discrepancy import integral_discrepancy, random_functions
from pfbr.metrics.mmd import KERNELS, mmd2
from pfbr.metrics.scores import cross_entropy
from pfbr.paper.streams import FUNCTION_SEED
from pfbr.particles.particles import Particles
from pfbr.particles.resampling import resample
from pfbr.typing import Key, Points, Scalar

BLOCK = 512  # particles whose pairs an MMD² takes in together
RESAMPLED = "cross entropy, resampled first"
INTEGRALS = {"x": "E x", "xAx": "E xᵀAx", "(Ax+a)(Bx+b)": "E (Ax+a)ᵀ(Bx+b)"}


def mmd_name(kernel: str) -> str:
    return f"MMD², {kernel} kernel"


def mmd2_in_blocks(key: Key, particles: Particles, truth_draws: Points, kernel: str) -> Scalar:
    """MMD² at a cost linear in the particles: pairs are taken within random blocks of them.

    On average over the blocks it is the U-statistic of all pairs (for weighted particles up to a ratio of averages).
    """
    n, m = particles.num_particles, truth_draws.shape[0]
    if n <= BLOCK:
        return mmd2(particles, truth_draws, kernel).value
    gram = KERNELS[kernel]
    order = jax.random.permutation(key, n)[: n // BLOCK * BLOCK].reshape(-1, BLOCK)

    def block(indices):
        points, w = particles.points[indices], jnp.exp(particles.log_weights[indices])
        inside = gram(points, points)
        pairs = w @ inside @ w - jnp.sum(w**2 * jnp.diagonal(inside))
        return pairs, jnp.sum(w) ** 2 - jnp.sum(w**2), w @ jnp.mean(gram(points, truth_draws), axis=1), jnp.sum(w)

    pairs, weight, across, total = (jnp.sum(part) for part in jax.lax.map(block, order))
    true = gram(truth_draws, truth_draws)
    own = (jnp.sum(true) - jnp.trace(true)) / (m * (m - 1))
    return pairs / jnp.maximum(weight, 1e-12) + own - 2.0 * across / total


def paper_metrics(dim: int, kernels: Sequence[str], mmd_draws: int) -> dict[str, Metric]:
    """MMD² against the first `mmd_draws` true draws, and the integral discrepancies for linear-Gaussian truths."""

    def by_kernel(kernel: str) -> Metric:
        return lambda key, particles, at: mmd2_in_blocks(key, particles, at.draws[:mmd_draws], kernel)

    def by_function(function) -> Metric:
        return lambda key, particles, at: integral_discrepancy(particles, function, at.truth).value  # type: ignore[arg-type]

    functions = random_functions(jax.random.key(FUNCTION_SEED), dim)
    return {
        **{mmd_name(kernel): by_kernel(kernel) for kernel in kernels},
        **{INTEGRALS[name]: by_function(function) for name, function in functions.items()},
    }


def resampled_first(key, particles, at):
    """Cross entropy after drawing equally weighted particles, as SMC's output is often looked at."""
    same = jnp.ptp(particles.log_weights) < 1e-6  # then there is nothing to draw
    redrawn = resample(key, particles, "systematic")
    return cross_entropy(jax.tree.map(lambda a, b: jnp.where(same, a, b), particles, redrawn), at.draws)
