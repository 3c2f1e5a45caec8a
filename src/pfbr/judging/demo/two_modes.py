"""The first scene: an unseen stream whose posterior has two modes, ours beside the truth and beside SMC, stage by
stage."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import equinox as eqx
import jax
from jax import numpy as jnp

from pfbr.baselines import OnePassSMC
from pfbr.inference.method import Method, Stream, record
from pfbr.inference.registry import as_method
from pfbr.judging.demo.record import DemoRecord, as_float32
from pfbr.judging.stages import at_every_stage
from pfbr.metrics import truth
from pfbr.metrics.scores import cross_entropy
from pfbr.models import GaussianMixture, Model
from pfbr.models.simulate import simulate
from pfbr.particles.particles import Particles, equally_weighted
from pfbr.typing import Key

TIMED_RUNS = 5
NAME = "two-modes"


@dataclass(frozen=True)
class TwoModesSettings:
    """What the demonstration shows; each field with its reason."""

    seed: int = 2019  # of the stream and of every method; training never sees the stream
    unknown: tuple[float, float] = (1.0, -2.0)  # (-1, 2) explains its data equally well: two modes
    num_observations: int = 30  # as in the paper
    num_particles: int = 256  # as in the paper
    num_truth_draws: int = 4096  # to average the score over; its standard error is then about 0.02
    reach: float = 4.2  # half the side of the window; the posterior leaves it less than one time in a thousand
    cells: int = 96  # per side of the picture of the density, not of the grid behind it
    contour_masses: tuple[float, ...] = (0.5, 0.8, 0.95)  # each line encloses this much of the posterior


def run(
    method: str | Method = "auto",
    *,
    settings: TwoModesSettings = TwoModesSettings(),
    provenance: str = "",
    say: Callable[[str], None] = lambda message: None,
) -> DemoRecord:
    """Draw a stream, update with every method, and score each stage against the exact posterior.

    `provenance` says in words where the method comes from.
    """
    model = GaussianMixture()
    ours = as_method(method, model, rows=settings.num_observations)
    stream_key, truth_key, run_key = jax.random.split(jax.random.key(settings.seed), 3)
    say(f"drawing {settings.num_observations} observations from x = {settings.unknown}")
    observations = _observations(stream_key, model, settings)

    say("computing the exact posterior on a grid, after every observation")
    posteriors = eqx.filter_jit(truth.grid)(model, observations)
    drawn = draw_truth(truth_key, model, posteriors, settings.num_truth_draws + settings.num_particles)
    draws, exact = drawn[:, settings.num_particles :], jax.vmap(equally_weighted)(drawn[:, : settings.num_particles])
    window = window_of(model, observations, posteriors, settings)

    methods: dict[str, Particles] = {"exact": exact}
    seconds: dict[str, float] = {}
    for name, each in {"pfbr": ours, "smc": OnePassSMC()}.items():
        say(f"updating {settings.num_particles} particles with {name}")
        methods[name] = at_every_stage(run_key, each, model, observations, settings.num_particles)
        seconds[name] = _seconds_per_update(run_key, each, model, observations, settings.num_particles)
    prior = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf[:1], leaf.shape), exact)

    say("scoring every stage")
    score = jax.jit(jax.vmap(cross_entropy))
    arrays = {"observations": observations, **window}
    for name, particles in {**methods, "prior": prior}.items():
        arrays[f"{name}_score"] = score(particles, draws)
        arrays[f"{name}_mass"] = mass_below(particles)
        if name != "prior":
            arrays[f"{name}_points"], arrays[f"{name}_weights"] = particles.points, jnp.exp(particles.log_weights)
    facts = {**asdict(settings), "operator": provenance, "seconds_per_update": seconds}
    return DemoRecord(NAME, facts, as_float32(arrays))


@eqx.filter_jit
def _observations(key: Key, model: Model, settings: TwoModesSettings):
    return simulate(key, model, settings.num_observations, at=jnp.asarray(settings.unknown)).observations


@eqx.filter_jit
def draw_truth(key: Key, model: Model, posteriors: truth.GridTruth, num: int):
    """Exact draws at every stage, the prior first: (T + 1, num, 2)."""
    prior_key, posterior_key = jax.random.split(key)
    prior = jax.vmap(model.sample_prior)(jax.random.split(prior_key, num))
    keys = jax.random.split(posterior_key, posteriors.log_evidence.shape[0])
    posterior = jax.vmap(lambda stage, k: stage.sample(k, num))(posteriors, keys)
    return jnp.concatenate([prior[None], posterior])


@eqx.filter_jit
def window_of(model: Model, observations, posteriors: truth.GridTruth, settings: TwoModesSettings) -> dict[str, Any]:
    """The true log density on a fixed square, the levels that enclose given masses, and the mass of the mode x2 < 0."""
    ticks = (jnp.arange(settings.cells) + 0.5) / settings.cells * 2 * settings.reach - settings.reach
    points = jnp.stack(jnp.meshgrid(ticks, ticks, indexing="ij"), -1).reshape(-1, 2)
    prior = jax.vmap(model.log_prior)(points)
    likelihoods = jax.vmap(lambda o: jax.vmap(model.log_likelihood, (0, None))(points, o))(observations)
    log_joint = prior + jnp.concatenate([jnp.zeros((1, points.shape[0])), jnp.cumsum(likelihoods, 0)])
    log_evidence = jnp.append(jnp.zeros(1), posteriors.log_evidence)
    log_density = log_joint - log_evidence[:, None]

    cell = (2 * settings.reach / settings.cells) ** 2
    descending = -jnp.sort(-log_density, axis=1)
    enclosed = jnp.cumsum(jnp.exp(descending), axis=1) * cell
    masses = jnp.asarray(settings.contour_masses)
    index = jax.vmap(lambda row: jnp.searchsorted(row, masses))(enclosed)
    levels = jnp.take_along_axis(descending, jnp.minimum(index, points.shape[0] - 1), axis=1)
    below = jnp.exp(log_density) @ (points[:, 1] < 0) * cell
    shape = (observations.shape[0] + 1, settings.cells, settings.cells)
    return {"log_density": log_density.reshape(shape), "levels": levels, "truth_mass": below}


def _seconds_per_update(key: Key, method: Method, model: Model, observations, num: int) -> float:
    """Of the compiled loop; the fastest run is the one that shared the machine least."""
    runs = []
    for _ in range(TIMED_RUNS):
        began = time.perf_counter()
        jax.block_until_ready(record(key, method, model, Stream(observations), num).particles.points)
        runs.append(time.perf_counter() - began)
    return min(runs) / observations.shape[0]


def mass_below(particles: Particles):
    """Weight of the particles in the mode with x2 < 0, per stage."""
    return jnp.sum(jnp.exp(particles.log_weights) * (particles.points[..., 1] < 0), axis=-1)
