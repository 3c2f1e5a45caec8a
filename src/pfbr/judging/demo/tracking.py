"""The third scene: a filter in four dimensions with sharp observations, every rival given the same time.

A ship moves in the plane; three beacons take turns in telling their distance, at irregular times. How many particles
fit into our time is measured for each rival here, on this machine. The truth is a bootstrap filter with very many.
"""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

from pfbr.baselines import BootstrapSMC, EnKF
from pfbr.inference.method import Method, Stream, record
from pfbr.inference.registry import as_method
from pfbr.judging.demo.record import DemoRecord, as_float32
from pfbr.models.base import Model, StateSpaceModel, normal_log_densities
from pfbr.particles.particles import Particles, weighted_cov, weighted_mean

NAME = "tracking"
BEACONS = ((0.0, 0.0), (100.0, 0.0), (50.0, 90.0))
RIVALS: dict[str, Callable[[], Method]] = {"smc": BootstrapSMC, "enkf": EnKF}
TIMED_RUNS = 3
POOLED = 8  # filters that are the truth together


@dataclass(frozen=True)
class TrackingSettings:
    """What the scene shows; each field with its reason."""

    seed: int = 2019
    num_reports: int = 60
    num_particles: int = 256
    truth_particles: int = 100_000
    range_std: float = 0.2  # metres: sharp, where the cloud is metres wide before a report
    turbulence: float = 0.5  # of the velocity, per root second
    most_particles: int = 65_536  # a rival is given no more than that


class Ship(StateSpaceModel):
    """Position and velocity under white acceleration; `inputs` says which beacon reports its distance."""

    range_std: float
    turbulence: float

    @property
    def dim(self) -> int:
        return 4

    def sample_prior(self, key):
        return jnp.array([40.0, 30.0, 0.0, 0.0]) + jnp.array([20.0, 20.0, 2.0, 2.0]) * jax.random.normal(key, (4,))

    def log_prior(self, x):
        return jnp.sum(normal_log_densities(x, jnp.array([40.0, 30.0, 0.0, 0.0]), jnp.array([20.0, 20.0, 2.0, 2.0])))

    def sample_transition(self, key, x, *, dt):
        # the exact law of integrated white noise: position and velocity are correlated
        first, second = jax.random.normal(key, (2, 2))
        spread = self.turbulence * jnp.sqrt(dt)
        velocity = spread * first
        position = dt * velocity / 2 + dt * spread / jnp.sqrt(12.0) * second
        return x + jnp.concatenate([dt * x[2:] + position, velocity])

    def log_likelihood(self, x, observation, *, inputs):
        return normal_log_densities(observation, self._distance(x, inputs), self.range_std)

    def sample_observation(self, key, x, *, inputs):
        return self._distance(x, inputs)[None] + self.range_std * jax.random.normal(key, (1,))

    def _distance(self, x, beacon):
        return jnp.sqrt(jnp.sum((x[:2] - jnp.asarray(BEACONS)[beacon]) ** 2) + 1e-9)


def run(
    *, settings: TrackingSettings = TrackingSettings(), say: Callable[[str], None] = lambda message: None
) -> DemoRecord:
    """One voyage, followed by the default method and by each rival in the same time, beside the truth."""
    model = Ship(settings.range_std, settings.turbulence)
    stream, states = voyage(model, settings)
    key = jax.random.key(settings.seed)
    say(f"following a ship with {POOLED} filters of {settings.truth_particles:,} particles, for the truth")
    truth = pooled(key, BootstrapSMC(), model, stream, settings.truth_particles)
    arrays = {"states": states, "beacon": stream.inputs, "truth_mean": truth.mean, "truth_std": truth.std}
    say("the same with the default method")
    ours = as_method("auto", model)
    budget = seconds(ours, model, stream, settings.num_particles)
    particles, taken = {"pfbr": settings.num_particles}, {"pfbr": budget}
    for name, make in RIVALS.items():
        say(f"finding how many particles of {name} fit into the same time")
        particles[name], taken[name] = fitting(make(), model, stream, budget, settings)
    for name, num in particles.items():
        method = ours if name == "pfbr" else RIVALS[name]()
        said = followed(key, method, model, stream, num)
        arrays |= {f"{name}_mean": said.mean, f"{name}_std": said.std, f"{name}_error": error(said, truth)}
    facts = {**asdict(settings), "particles": particles, "seconds_per_report": taken}
    return DemoRecord(NAME, facts, as_float32(arrays))


def voyage(model: Ship, settings: TrackingSettings) -> tuple[Stream, np.ndarray]:
    """Reports at irregular times, and where the ship was at each."""
    rng = np.random.default_rng(settings.seed)
    dt = jnp.asarray(rng.exponential(1.0, settings.num_reports) + 0.05, jnp.float32)
    beacon = jnp.asarray(np.arange(settings.num_reports) % len(BEACONS))

    def report(x, step):
        key, dt, beacon = step
        move, see = jax.random.split(key)
        x = model.sample_transition(move, x, dt=dt)
        return x, (x, model.sample_observation(see, x, inputs=beacon))

    keys = jax.random.split(jax.random.key(settings.seed + 1), settings.num_reports)
    begin = jnp.array([35.0, 25.0, 1.5, 1.0])
    _, (states, observations) = jax.lax.scan(report, begin, (keys, dt, beacon))
    return Stream(observations, dt, beacon), np.asarray(states)


class Followed(eqx.Module):
    """Mean, standard deviations and covariance after every report."""

    mean: jax.Array
    std: jax.Array
    cov: jax.Array


@eqx.filter_jit
def followed(key, method: Method, model: Model, stream: Stream, num_particles: int) -> Followed:
    clouds = record(key, method, model, stream, num_particles).particles

    def moments(cloud: Particles):
        cov = weighted_cov(cloud)
        return weighted_mean(cloud), jnp.sqrt(jnp.diagonal(cov)), cov

    return Followed(*jax.lax.map(moments, clouds))


@eqx.filter_jit
def pooled(key, method: Method, model: Model, stream: Stream, num_particles: int) -> Followed:
    """Several filters as one, each counting by its evidence so far: one alone loses what a sharp range under a vague
    prior leaves, and two of them may then be half a standard deviation apart."""

    def one(key):
        recorded = record(key, method, model, stream, num_particles)
        cov = jax.lax.map(weighted_cov, recorded.particles)
        return jax.lax.map(weighted_mean, recorded.particles), cov, recorded.info.log_evidence

    means, covs, evidence = jax.lax.map(one, jax.random.split(key, POOLED))  # one after the other, for their memory
    share = jax.nn.softmax(evidence, axis=0)
    mean = jnp.einsum("kt,ktd->td", share, means)
    away = means - mean
    cov = jnp.einsum("kt,ktij->tij", share, covs + away[..., :, None] * away[..., None, :])
    return Followed(mean, jnp.sqrt(jnp.diagonal(cov, axis1=1, axis2=2)), cov)


def error(said: Followed, truth: Followed) -> np.ndarray:
    """Mahalanobis distance from the true mean over √d, after every report."""
    away = np.asarray(said.mean - truth.mean, float)[..., None]
    return np.sqrt(np.sum(away * np.linalg.solve(np.asarray(truth.cov, float), away), axis=(1, 2)) / away.shape[1])


def seconds(method: Method, model: Ship, stream: Stream, num_particles: int) -> float:
    """A report, of the compiled loop; the fastest run is the one that shared the machine least."""
    taken = []
    for _ in range(TIMED_RUNS + 1):  # the first one compiles
        began = time.perf_counter()
        jax.block_until_ready(record(jax.random.key(0), method, model, stream, num_particles).last)
        taken.append(time.perf_counter() - began)
    return min(taken[1:]) / stream.observations.shape[0]


def fitting(
    method: Method, model: Ship, stream: Stream, budget: float, settings: TrackingSettings
) -> tuple[int, float]:
    """How many particles take as long as the budget, and what they take; time is a line in their number."""
    few, many = settings.num_particles, 16 * settings.num_particles
    at_few, at_many = (seconds(method, model, stream, num) for num in (few, many))
    slope = max((at_many - at_few) / (many - few), 1e-12)
    num = int(np.clip(few + (budget - at_few) / slope, few, settings.most_particles))
    return num, seconds(method, model, stream, num)
