"""Six problems, each a few streams with the true mean and covariance at the stages that are judged."""

from collections.abc import Callable
from dataclasses import dataclass

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

from pfbr.baselines import BootstrapSMC
from pfbr.inference.method import Stream
from pfbr.judging.demo.tracking import Ship, followed
from pfbr.judging.frontier.models import Volatility, Weather
from pfbr.metrics.truth import grid, kalman
from pfbr.models.base import Model
from pfbr.models.gaussian_mixture import GaussianMixture
from pfbr.models.linear_dynamics import LinearDynamics
from pfbr.models.logistic_regression import LogisticRegression
from pfbr.models.simulate import simulate
from pfbr.particles.particles import Particles, weighted_cov, weighted_mean

TRUTH_PARTICLES = 100_000  # of bootstrap filters, where there is no formula
BEACONS = 3
FREEDOM, WIDER, DRAWS = 5.0, 1.2, 40_000  # of the proposal behind the truth of logistic regression


@dataclass(frozen=True)
class Judged:
    """One stream, the stages that count, and the truth there."""

    stream: Stream
    stages: np.ndarray
    mean: np.ndarray  # (stages, d)
    cov: np.ndarray  # (stages, d, d)
    error: float  # of the mean, in standard deviations; 0: exact


@dataclass(frozen=True)
class Problem:
    """`stream` makes the one of a seed. `unit` is what errors are measured in."""

    title: str
    model: Model
    stream: Callable[[Model, int], Judged]
    unit: str = "posterior sd"


def distances(mean: np.ndarray, judged: Judged) -> np.ndarray:
    """Mahalanobis distance from the true mean over √d, at each stage that is judged."""
    away = (np.asarray(mean, float)[judged.stages] - judged.mean)[..., None]
    far = np.swapaxes(away, -1, -2) @ np.linalg.solve(judged.cov, away)
    return np.sqrt(far[:, 0, 0] / judged.mean.shape[1])


@eqx.filter_jit
def _simulated(key, model: Model, length: int):
    return simulate(key, model, length)


def _drawn(model: Model, seed: int, length: int) -> tuple[Stream, np.ndarray]:
    drawn = _simulated(jax.random.key(seed), model, length)
    return Stream(drawn.observations, drawn.dt, drawn.inputs), np.asarray(drawn.truths)


def _all(stream: Stream) -> np.ndarray:
    return np.arange(stream.observations.shape[0])


def two_modes(model: Model, seed: int) -> Judged:
    stream, _ = _drawn(model, seed, 30)
    truth = eqx.filter_jit(grid)(model, stream)
    draws = jax.vmap(lambda t, k: t.sample(k, 20_000))(truth, jax.random.split(jax.random.key(seed), 30))
    return Judged(stream, _all(stream), np.asarray(truth.mean, float), _covariances(draws), 0.0)


def _covariances(draws) -> np.ndarray:
    return np.stack([np.cov(np.asarray(one, float).T) for one in draws])


def by_kalman(model: Model, seed: int) -> Judged:
    stream, _ = _drawn(model, seed, 25)
    truth = eqx.filter_jit(kalman)(model, stream)
    return Judged(stream, _all(stream), np.asarray(truth.mean, float), np.asarray(truth.cov, float), 0.0)


def by_brute_force(model: Model, seed: int, stream: Stream) -> Judged:
    """Two bootstrap filters with very many particles, averaged; half their distance is the truth's own error."""
    runs = [
        followed(key, BootstrapSMC(), model, stream, TRUTH_PARTICLES) for key in jax.random.split(jax.random.key(seed))
    ]
    mean = np.mean([np.asarray(run.mean, float) for run in runs], axis=0)
    cov = np.mean([np.asarray(run.cov, float) for run in runs], axis=0)
    judged = Judged(stream, _all(stream), mean, cov, 0.0)
    error = float(np.sqrt(np.mean(distances(np.asarray(runs[0].mean), judged) ** 2)))
    return Judged(stream, judged.stages, mean, cov, error)


def ranges(model: Model, seed: int) -> Judged:
    """Three beacons by turns, at irregular times."""
    rng = np.random.default_rng(seed)
    num = 60
    dt = jnp.asarray(rng.exponential(1.0, num) + 0.05, jnp.float32)
    beacon = jnp.asarray(np.arange(num) % BEACONS)
    observations = _voyage(jax.random.key(seed), model, dt, beacon)
    return by_brute_force(model, seed, Stream(observations, dt, beacon))


@eqx.filter_jit
def _voyage(key, model: Model, dt, beacon):
    def report(x, step):
        key, dt, beacon = step
        move, see = jax.random.split(key)
        x = model.sample_transition(move, x, dt=dt)
        return x, model.sample_observation(see, x, inputs=beacon)

    start, steps = jax.random.split(key)
    return jax.lax.scan(report, model.sample_prior(start), (jax.random.split(steps, len(dt)), dt, beacon))[1]


def volatility(model: Model, seed: int) -> Judged:
    stream, _ = _drawn(model, seed, 200)
    return by_brute_force(model, seed, stream)


def weather(model: Model, seed: int) -> Judged:
    """Beside the state itself, as the literature does: a filter without noise has no brute force."""
    stream, states = _drawn(model, seed, 200)
    stages = np.arange(40, 200)
    return Judged(stream, stages, states[stages].astype(float), np.broadcast_to(np.eye(3), (160, 3, 3)), 0.0)


def logistic(model: Model, seed: int) -> Judged:
    stream, _ = _drawn(model, seed, 200)
    stages = np.array([19, 49, 99, 199])
    found = [_weighed(model, stream, stage + 1, jax.random.key(seed)) for stage in stages]
    mean, cov, error = (np.stack([np.asarray(one[i], float) for one in found]) for i in range(3))
    return Judged(stream, stages, mean, cov, float(error.max()))


@eqx.filter_jit
def _weighed(model: Model, stream: Stream, rows: int, key):
    """Importance sampling from a wide Student-t around the mode: mean, covariance, error of the mean."""
    counted = jnp.arange(stream.observations.shape[0]) < rows

    def log_joint(x):
        one = lambda y, u: model.log_likelihood(x, y, inputs=u)
        return model.log_prior(x) + jnp.sum(jnp.where(counted, jax.vmap(one)(stream.observations, stream.inputs), 0.0))

    def newton(_, x):
        return x - jnp.linalg.solve(jax.hessian(log_joint)(x), jax.grad(log_joint)(x))

    mode = jax.lax.fori_loop(0, 20, newton, jnp.zeros(model.dim))
    precision = -jax.hessian(log_joint)(mode)
    root = jnp.linalg.inv(jnp.linalg.cholesky(precision)).T
    normal_key, scale_key = jax.random.split(key)
    z = jax.random.normal(normal_key, (DRAWS, model.dim))
    square = 2 * jax.random.gamma(scale_key, FREEDOM / 2, (DRAWS, 1)) / FREEDOM
    t = z / jnp.sqrt(square)
    points = mode + WIDER * t @ root.T
    log_proposal = -0.5 * (FREEDOM + model.dim) * jnp.log1p(jnp.sum(t**2, axis=1) / FREEDOM)
    log_weights = jax.nn.log_softmax(jax.lax.map(log_joint, points, batch_size=2000) - log_proposal)
    cloud = Particles(points, log_weights)
    return weighted_mean(cloud), weighted_cov(cloud), jnp.sqrt(jnp.sum(jnp.exp(2 * log_weights)))


PROBLEMS: dict[str, Problem] = {
    "two-modes": Problem("mixture with two modes, d = 2, static", GaussianMixture(), two_modes),
    "linear-10": Problem("linear dynamics, d = 10", LinearDynamics.random(0, 10), by_kalman),
    "ranges-4": Problem("tracking by ranges, d = 4", Ship(range_std=2.0, turbulence=0.5), ranges),
    "volatility": Problem("stochastic volatility, d = 1", Volatility(), volatility),
    "lorenz-63": Problem("Lorenz-63, d = 3, no noise", Weather(), weather, unit="units of the system"),
    "logistic-10": Problem("logistic regression, d = 10, static", LogisticRegression(10), logistic),
}
