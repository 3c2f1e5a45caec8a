"""Kalman's filter for models that are not linear, as rivals: by derivatives (EKF) and by sigma points (UKF).

Follows Jazwinski (1970) with the iterated update of Bell and Cathey (1993), and Julier and Uhlmann (1997) with the
noise of the dynamics among the sigma points. Both are told the mean and the covariance of an observation given the
state, which a log likelihood does not say: `Observing` has them for each problem.
"""

from abc import abstractmethod
from collections.abc import Callable

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp
from jaxtyping import Array

from benchmarks.streams.linear import OBSERVATION_COV, OBSERVING
from pfbr.inference.info import Info
from pfbr.inference.method import Method
from pfbr.models.conditions import conditions_of
from pfbr.particles.particles import Particles, equally_weighted


class Observing(eqx.Module):
    """Mean and covariance of what `seen` makes of an observation, given the state; `apart` is a difference of two."""

    mean: Callable = eqx.field(static=True)  # (model, x) -> (k,)
    covariance: Callable = eqx.field(static=True)  # (model, x) -> (k, k)
    seen: Callable = eqx.field(static=True, default=lambda y: y)
    apart: Callable = eqx.field(static=True, default=lambda a, b: a - b)


def _angle(a, b):
    return jnp.arctan2(jnp.sin(a - b), jnp.cos(a - b))


def _tracked(model, x):
    return model.model._seen(x, conditions_of(model).inputs)


def _track_noise(model, x):
    return jnp.eye(1) * model.model.noise**2


# log y² = x + log ε², whose mean and variance are known (Harvey, Ruiz and Shephard 1994)
LOG_SQUARE_MEAN, LOG_SQUARE_VARIANCE = -1.2704, np.pi**2 / 2

OBSERVE = {
    "ranges": Observing(_tracked, _track_noise),
    "bearings": Observing(_tracked, _track_noise, apart=_angle),
    "growth": Observing(lambda model, x: x**2 / 20, lambda model, x: jnp.eye(1)),
    "volatility": Observing(
        lambda model, x: x + LOG_SQUARE_MEAN,
        lambda model, x: LOG_SQUARE_VARIANCE * jnp.eye(1),
        seen=lambda y: jnp.log(y**2 + 1e-6),
    ),
    "poisson": Observing(lambda model, x: jnp.exp(x), lambda model, x: jnp.diag(jnp.exp(x))),
    "linear": Observing(lambda model, x: OBSERVING @ x, lambda model, x: jnp.asarray(OBSERVATION_COV, x.dtype)),
}


def observing(problem: str) -> Observing:
    return OBSERVE[problem.split("-")[0]]


class Gaussian(eqx.Module):
    mean: Array
    cov: Array


class KalmanRival(Method):
    """`inflation` multiplies the predicted covariance: what a linearisation leaves out."""

    observing: Observing
    inflation: float = 1.0

    def init(self, key, model, num_particles):
        """Every problem's prior is an affine function of normals."""
        origin = jnp.zeros(model.dim)
        root = jax.jacfwd(model.prior_from_normal)(origin)
        return Gaussian(model.prior_from_normal(origin), root @ root.T)

    def update(self, key, model, state: Gaussian, observation):
        predicted = self.predicted(model, state)
        predicted = Gaussian(predicted.mean, self.inflation * predicted.cov)
        after = self.corrected(model, predicted, self.observing.seen(observation))
        observed = conditions_of(model).observed
        there = jnp.array(True) if observed is None else jnp.all(observed)
        return jax.tree.map(lambda new, old: jnp.where(there, new, old), after, predicted), Info()

    def particles(self, state: Gaussian) -> Particles:
        """Points with the same mean and covariance."""
        d = state.mean.shape[0]
        axes = jnp.sqrt(float(d)) * _root(state.cov).T
        return equally_weighted(state.mean + jnp.concatenate([axes, -axes]))

    @abstractmethod
    def predicted(self, model, state: Gaussian) -> Gaussian:
        """Before the observation."""

    @abstractmethod
    def corrected(self, model, state: Gaussian, seen) -> Gaussian:
        """After it."""


class EKF(KalmanRival):
    """`iterations`: how often the observation is linearised, each time at the last estimate."""

    iterations: int = eqx.field(static=True, default=1)

    def predicted(self, model, state):
        none = jnp.zeros_like(state.mean)
        by_state, by_noise = jax.jacfwd(model.transition_from_normal, (0, 1))(state.mean, none)
        cov = by_state @ state.cov @ by_state.T + by_noise @ by_noise.T
        return Gaussian(model.transition_from_normal(state.mean, none), cov)

    def corrected(self, model, state, seen):
        at = state.mean
        for _ in range(self.iterations):
            slope = jax.jacfwd(lambda x: self.observing.mean(model, x))(at)
            noise = self.observing.covariance(model, at)
            gain = jnp.linalg.solve(slope @ state.cov @ slope.T + noise, slope @ state.cov).T
            surprise = self.observing.apart(seen, self.observing.mean(model, at)) - slope @ (state.mean - at)
            at = state.mean + gain @ surprise
        cov = state.cov - gain @ slope @ state.cov
        return Gaussian(at, 0.5 * (cov + cov.T))


class UKF(KalmanRival):
    """Sigma points at √`reach` standard deviations; `reach` None: as many as there are dimensions, so that the centre
    has no weight."""

    reach: float | None = eqx.field(static=True, default=None)

    def _points(self, mean, cov):
        n = mean.shape[0]
        reach = float(n) if self.reach is None else self.reach
        axes = jnp.sqrt(reach) * _root(cov).T
        points = jnp.concatenate([mean[None], mean + axes, mean - axes])
        return points, jnp.concatenate([jnp.array([1 - n / reach]), jnp.full(2 * n, 0.5 / reach)])

    def predicted(self, model, state):
        d = state.mean.shape[0]
        cov = jax.scipy.linalg.block_diag(state.cov, jnp.eye(d))
        points, weights = self._points(jnp.concatenate([state.mean, jnp.zeros(d)]), cov)
        moved = jax.vmap(lambda point: model.transition_from_normal(point[:d], point[d:]))(points)
        mean = weights @ moved
        return Gaussian(mean, (weights[:, None] * (moved - mean)).T @ (moved - mean))

    def corrected(self, model, state, seen):
        points, weights = self._points(state.mean, state.cov)
        made = jax.vmap(lambda x: self.observing.mean(model, x))(points)
        noise = jnp.tensordot(weights, jax.vmap(lambda x: self.observing.covariance(model, x))(points), 1)
        centre = made[0]
        off = self.observing.apart(made, centre)
        middle = weights @ off
        off = off - middle
        cross = (weights[:, None] * (points - state.mean)).T @ off
        gain = jnp.linalg.solve((weights[:, None] * off).T @ off + noise, cross.T).T
        surprise = self.observing.apart(seen, centre) - middle
        cov = state.cov - gain @ cross.T
        return Gaussian(state.mean + gain @ surprise, 0.5 * (cov + cov.T))


def _root(cov: Array) -> Array:
    """Of a covariance that rounding may have made indefinite."""
    values, vectors = jnp.linalg.eigh(cov)
    return vectors * jnp.sqrt(jnp.maximum(values, 1e-12))
