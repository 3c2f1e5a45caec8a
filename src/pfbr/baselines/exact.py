"""i.i.d. draws of the true posterior, online: the near end of every scale, by formula or on a grid.

Kalman, "A new approach to linear filtering and prediction problems" (1960), where the model is linear and Gaussian;
summation on a grid over all stored observations where it has two unknowns at rest.
"""

from typing import Any

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.baselines import edge
from pfbr.inference.history import History, check_capacity, empty_history, needs_shape
from pfbr.inference.method import OnlineMethod
from pfbr.metrics.truth import GaussianTruth, GridTruth, Truth
from pfbr.models.base import Model, StateSpaceModel
from pfbr.particles.particles import Particles, equally_weighted
from pfbr.typing import Key, Observation


class ExactState(eqx.Module):
    """Present draws, and what the next posterior is computed from."""

    draws: Particles
    memory: Any  # a GaussianTruth, or a History with the box that holds the prior


class Exact(OnlineMethod):
    """Fresh draws from p(x | o_1 … o_m) after each observation. `cells` a side and `capacity` are for the grid."""

    cells: int = eqx.field(static=True, default=128)
    capacity: int = eqx.field(static=True, default=128, converter=check_capacity)

    def init(self, key: Key, model: Model, num_particles: int) -> ExactState:
        edge.accept(self, model, num_particles)
        points = edge.prior_points(key, model, num_particles)
        draws = equally_weighted(points, jax.vmap(model.log_prior)(points))
        system = model.linear_gaussian()
        if system is not None:
            return ExactState(draws, GaussianTruth(system.mean, system.cov, jnp.zeros(())))
        prior = edge.prior_points(jax.random.key(0), model, 4096)
        middle = jnp.mean(prior, 0)
        reach = 2.0 * jnp.max(jnp.abs(prior - middle), 0)
        return ExactState(draws, (empty_history(model, self.capacity), middle - reach, middle + reach))

    def update(self, key: Key, model: Model, state: ExactState, observation: Observation) -> tuple[ExactState, dict]:
        observation = edge.accept_observation(model, observation)
        truth: Truth
        memory: Any
        if isinstance(state.memory, GaussianTruth):
            truth = memory = kalman_step(model, state.memory, observation)
            info = {"log_evidence_increment": memory.log_evidence - state.memory.log_evidence}
        else:
            history, lower, upper = state.memory
            history = history.append(observation)
            memory = (history, lower, upper)
            truth = on_grid = posterior_on_grid(model, history, lower, upper, self.cells)
            info = {"log_evidence": on_grid.log_evidence}
        points = truth.sample(key, state.draws.num_particles)
        return ExactState(equally_weighted(points, truth.log_density(points)), memory), info

    def particles(self, state: ExactState) -> Particles:
        return state.draws

    def unsupported(self, model: Model) -> str | None:
        if model.linear_gaussian() is not None:
            return None
        if isinstance(model, StateSpaceModel) or int(model.dim) != 2:
            return "no formula or grid gives its posterior; take long runs of NUTS (`pfbr.truth_nuts`) as the truth."
        return needs_shape(model)


def kalman_step(model: Model, posterior: GaussianTruth, observation: Observation) -> GaussianTruth:
    """One prediction and one update of a linear-Gaussian model."""
    A, Q, B, R, _, _ = model.linear_gaussian()  # type: ignore[misc]
    mean, cov = A @ posterior.mean, A @ posterior.cov @ A.T + Q
    innovation_cov = B @ cov @ B.T + R
    gain = jnp.linalg.solve(innovation_cov, B @ cov).T
    seen, expected = observation.reshape(-1), B @ mean
    increment = jax.scipy.stats.multivariate_normal.logpdf(seen, expected, innovation_cov)
    shrink = jnp.eye(mean.shape[0]) - gain @ B
    cov = shrink @ cov @ shrink.T + gain @ R @ gain.T
    return GaussianTruth(mean + gain @ (seen - expected), cov, posterior.log_evidence + increment)


def posterior_on_grid(
    model: Model, history: History, lower: Float[Array, " 2"], upper: Float[Array, " 2"], cells: int
) -> GridTruth:
    """The posterior given all stored observations, on a box narrowed three times to where it lives."""
    ticks = (jnp.arange(cells) + 0.5) / cells
    unit = jnp.stack(jnp.meshgrid(ticks, ticks, indexing="ij"), -1).reshape(-1, 2)

    def log_joint(points):
        def include(i, total):
            return total + jax.vmap(model.log_likelihood, (0, None))(points, history.stored[i])

        return jax.lax.fori_loop(0, history.count, include, jax.vmap(model.log_prior)(points))

    def narrow(_, box):
        lower, upper = box
        points = lower + unit * (upper - lower)
        values = log_joint(points)
        alive = (values > jnp.max(values) - 14.0)[:, None]
        margin = 2.0 * (upper - lower) / cells
        return (
            jnp.min(jnp.where(alive, points, jnp.inf), 0) - margin,
            jnp.max(jnp.where(alive, points, -jnp.inf), 0) + margin,
        )

    lower, upper = jax.lax.fori_loop(0, 3, narrow, (lower, upper))
    values = log_joint(lower + unit * (upper - lower))
    total = jax.nn.logsumexp(values)
    log_evidence = total + jnp.sum(jnp.log((upper - lower) / cells))
    return GridTruth(lower, upper, (values - total).reshape(cells, cells), log_evidence)
