"""The ensemble square-root Kalman filter: one affine map, from the ensemble's own mean and covariance.

Follows Evensen (1994) in the deterministic form of Bishop, Etherton and Majumdar, "Adaptive sampling with the ensemble
transform Kalman filter" (2001), and Tippett et al., "Ensemble square root filters" (2003). The observation operator
is never asked for: its ensemble linearisation is read off the scores of the likelihood, which for linear and
Gaussian models gives exactly the transform filter, and for others its natural extension.
"""

import equinox as eqx
from jax import numpy as jnp

from pfbr.baselines import edge
from pfbr.errors import InputError
from pfbr.flow.likelihood import Likelihood
from pfbr.inference.info import Info
from pfbr.inference.method import Method
from pfbr.models.base import Model
from pfbr.particles.particles import Particles, equally_weighted
from pfbr.typing import Key, Observation


def _inflation(value: float) -> float:
    if value < 1.0:
        raise InputError(f"`inflation` multiplies the ensemble's spread and is at least 1; got {value}.")
    return value


class EnKF(Method):
    """In the whitened frame of the ensemble, with scores u_j: G = −sym mean(w_j u_jᵀ), ū = mean u_j,

    w ← (I + G)⁻¹ ū + (I + G)^{-1/2} w.

    G is the information that the observation adds; where a likelihood is not log-concave its negative part is cut
    off. `inflation` ≥ 1 widens the prediction, against an ensemble that grows too sure of itself.
    """

    inflation: float = eqx.field(static=True, default=1.0, converter=_inflation)

    def init(self, key: Key, model: Model, num_particles: int) -> Particles:
        edge.accept(self, model, num_particles)
        return equally_weighted(edge.prior_points(key, model, num_particles))

    def update(self, key: Key, model: Model, state: Particles, observation: Observation) -> tuple[Particles, Info]:
        observation = edge.accept_observation(model, observation)
        points = edge.predict(key, model, state.points)
        mean = jnp.mean(points, 0)
        anomalies = self.inflation * (points - mean)
        points = mean + anomalies
        n = points.shape[0]

        # symmetric whitening that survives fewer particles than dimensions: empty directions stay empty
        variances, axes = jnp.linalg.eigh(anomalies.T @ anomalies / (n - 1))
        std = jnp.sqrt(jnp.maximum(variances, 0.0))
        full = std > 1e-5 * jnp.max(std)
        whitened = (anomalies @ axes) * jnp.where(full, 1.0 / jnp.where(full, std, 1.0), 0.0)

        scores = (Likelihood(model, observation).scores(points) @ axes) * std
        information = -whitened.T @ scores / (n - 1)
        strengths, turn = jnp.linalg.eigh((information + information.T) / 2)
        strengths = jnp.maximum(strengths, 0.0)
        shift = turn @ ((jnp.mean(scores, 0) @ turn) / (1.0 + strengths))
        root = (turn / jnp.sqrt(1.0 + strengths)) @ turn.T
        moved = mean + ((shift + whitened @ root) * std) @ axes.T
        return equally_weighted(moved), Info(details={"information_gain": 0.5 * jnp.sum(jnp.log1p(strengths))})

    def particles(self, state: Particles) -> Particles:
        return state
