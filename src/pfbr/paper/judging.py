"""The paper's measures of one stage: MMD² through kernels, errors of expectations, and SMC as it is often scored."""

import dataclasses
import math
from collections.abc import Iterable, Sequence

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.baselines import tune
from pfbr.inference.method import Method
from pfbr.io.records import Measurement, Records
from pfbr.judging.evaluate import Judge
from pfbr.metrics.integral_discrepancy import integral_discrepancy, random_functions
from pfbr.metrics.mmd import KERNELS, mmd2
from pfbr.metrics.scores import cross_entropy
from pfbr.models.base import Model
from pfbr.models.simulate import simulate
from pfbr.paper.contract import Run
from pfbr.particles.particles import Particles
from pfbr.particles.resampling import resample
from pfbr.typing import Key, Points, Scalar

# Seeds a long way from those of training (0 and up), so that no stream is ever used twice.
TEST_SEED, TUNING_SEED, FUNCTION_SEED = 70_000, 80_000, 90_000
BLOCK = 512  # particles whose pairs an MMD² takes in together
RESAMPLED = "cross entropy, resampled first"
TUNED, CHOSEN = "tuned candidate", "chosen "
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


def paper_judges(dim: int, kernels: Sequence[str], mmd_draws: int) -> dict[str, Judge]:
    """MMD² against the first `mmd_draws` true draws, and the integral discrepancies for linear-Gaussian truths."""

    def by_kernel(kernel: str) -> Judge:
        return lambda key, particles, at: mmd2_in_blocks(key, particles, at.draws[:mmd_draws], kernel)

    def by_function(function) -> Judge:
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


def draw_streams(run: Run, model: Model, num_streams: int, num_stages: int, *, at=None) -> jax.Array:
    """The test streams: the user's own, or fresh ones from the model."""
    if run.observations is not None:
        return jnp.asarray(run.observations, dtype=float)
    keys = jax.random.split(jax.random.key(TEST_SEED + run.seed), num_streams)
    return jax.vmap(lambda key: simulate(key, model, num_stages, at=at).observations)(keys)


def tuned(
    run: Run,
    records: Records,
    name: str,
    candidates: Sequence[Method],
    model: Model,
    *,
    num_particles: int,
    length: int,
    num_tasks: int,
) -> Method:
    """The best candidate on streams of its own; which one it was is in the records, and is not asked again."""
    known = [m for m in records.measurements() if m.method == name and m.metric == TUNED]
    if known:
        return candidates[int(known[-1].value)]
    run.say(f"tuning {name} ({len(candidates)} candidates)")
    chosen = tune(
        jax.random.key(TUNING_SEED),
        candidates,
        model,
        num_particles=num_particles,
        length=length,
        num_tasks=num_tasks,
    )
    index = int(np.argmin(chosen.scores))
    lines = {**{CHOSEN + field: value for field, value in _choice(candidates, index).items()}, TUNED: float(index)}
    records.add(Measurement(name, metric, None, value, num_particles=num_particles) for metric, value in lines.items())
    run.tick()
    return chosen.method


def described(measurements: Iterable[Measurement], method: str) -> str:
    """The settings that tuning chose, in words."""
    found = {m.metric: m.value for m in measurements if m.method == method and m.metric.startswith(CHOSEN)}
    words = [f"{name.removeprefix(CHOSEN).replace('_', ' ')} {value:g}" for name, value in found.items()]
    return ", ".join(word.replace(" nan", " by its default rule") for word in words) or "nothing to choose"


def _choice(candidates: Sequence[Method], index: int) -> dict[str, float]:
    """The settings in which the chosen candidate differs from others, as numbers."""
    chosen = candidates[index]
    names = [f.name for f in dataclasses.fields(chosen) if len({str(getattr(c, f.name)) for c in candidates}) > 1]
    values = {name: getattr(chosen, name) for name in names}
    return {name: math.nan if value is None else float(value) for name, value in values.items()}
