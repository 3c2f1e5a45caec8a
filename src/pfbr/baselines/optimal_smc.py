"""The fully adapted particle filter: resample by p(o | x_{m-1}), then draw from p(x_m | x_{m-1}, o).

Follows Pitt and Shephard, "Filtering via simulation: auxiliary particle filters" (1999), with the optimal proposal of
Doucet, Godsill and Andrieu (2000). Both laws have a formula where the model is linear and Gaussian.
"""

import equinox as eqx
import jax
from jax import numpy as jnp

from pfbr.baselines import edge
from pfbr.inference.info import Info
from pfbr.inference.method import Method
from pfbr.metrics.truth import is_linear_gaussian
from pfbr.models.base import Model, StateSpaceModel
from pfbr.models.conditions import conditions_of, example_of, stays
from pfbr.particles.particles import Particles, equally_weighted, ess, normalise
from pfbr.particles.resampling import check_scheme, check_threshold, resample, when_poor
from pfbr.typing import Key, Observation


class OptimalSMC(Method):
    """w ∝ N(o; B A x, B Q Bᵀ + R), resample, then x_m ~ N(A x + K (o − B A x), (I − K B) Q).

    The weights do not depend on the move, so resampling comes before it: after it, no two particles are alike.
    """

    resampling: str = eqx.field(static=True, default="systematic", converter=check_scheme)
    threshold: float = eqx.field(static=True, default=1.0, converter=check_threshold)

    def init(self, key: Key, model: Model, num_particles: int) -> Particles:
        edge.accept(self, model, num_particles)
        return equally_weighted(edge.prior_points(key, model, num_particles))

    def update(self, key: Key, model: Model, state: Particles, observation: Observation) -> tuple[Particles, Info]:
        observation = edge.accept_observation(model, observation).reshape(-1)
        resample_key, noise_key = jax.random.split(key)
        A, Q, B, R, observation = _matrices(model, observation)
        innovation_cov = B @ Q @ B.T + R
        log_predictive = jax.scipy.stats.multivariate_normal.logpdf(
            observation, state.points @ (B @ A).T, innovation_cov
        )
        log_weights = state.log_weights + log_predictive
        info = Info(ess=ess(log_weights), log_predictive=jax.nn.logsumexp(log_weights))
        weighted = Particles(state.points, normalise(log_weights))
        kept = when_poor(weighted, self.threshold, lambda p: resample(resample_key, p, self.resampling))

        gain = jnp.linalg.solve(innovation_cov, B @ Q).T
        predicted = kept.points @ A.T
        centres = predicted + (observation - predicted @ B.T) @ gain.T
        shrink = jnp.eye(Q.shape[0]) - gain @ B
        variances, axes = jnp.linalg.eigh(shrink @ Q @ shrink.T + gain @ R @ gain.T)  # Q may be singular
        noise = jax.random.normal(noise_key, centres.shape) * jnp.sqrt(jnp.maximum(variances, 0.0))
        return Particles(centres + noise @ axes.T, kept.log_weights), info

    def particles(self, state: Particles) -> Particles:
        return state

    def unsupported(self, model: Model) -> str | None:
        if not is_linear_gaussian(model):
            return "its optimal proposal has no formula (`linear_gaussian()` is None); use BootstrapSMC or AESMC."
        if not isinstance(model, StateSpaceModel):
            return edge.needs_dynamics(model, "IBIS")
        system = (example_of(model) or model).linear_gaussian()
        if system is not None and (system.a is not None or system.b is not None):
            return "its system has offsets (controls); use BootstrapSMC."
        return edge.needs_dynamics(model, "IBIS")


def _matrices(model: Model, observation: Observation):
    """The system under the conditions of this observation: without what was not seen, at rest where no time passed."""
    system = model.linear_gaussian()
    assert system is not None  # `unsupported` says so
    A, Q, B, R = system.A, system.Q, system.B, system.R
    still, observed = stays(model), conditions_of(model).observed
    if still is not None:
        A, Q = jnp.where(still, jnp.eye(A.shape[0]), A), jnp.where(still, 0.0, Q)
    if observed is not None:
        missing = ~jnp.asarray(observed).reshape(-1)
        B = jnp.where(missing[:, None], 0.0, B)
        R = jnp.where(missing[:, None] | missing, jnp.diag(missing.astype(R.dtype)), R)
        observation = jnp.where(missing, 0.0, observation)
    return A, Q, B, R, observation
