"""i.i.d. draws of the true posterior, online: the near end of every scale, by formula or on a grid.

Kalman, "A new approach to linear filtering and prediction problems" (1960), where the model is linear and Gaussian;
summation on a grid over all stored observations where it has two unknowns at rest.
"""

import equinox as eqx
import jax
from jax import numpy as jnp

from pfbr.baselines import edge
from pfbr.inference.history import History, check_capacity, empty_history
from pfbr.inference.info import Info
from pfbr.inference.method import Method
from pfbr.metrics.truth import (
    GaussianTruth,
    GridTruth,
    Truth,
    box_of_mass,
    grid_from_log_density,
    is_linear_gaussian,
    kalman_step,
)
from pfbr.models.base import Model, StateSpaceModel
from pfbr.particles.particles import Particles, equally_weighted
from pfbr.typing import Key, Observation, Point, Scalar


class GridMemory(eqx.Module):
    """All rows so far, the box that holds the prior, and the log evidence."""

    history: History
    lower: Point
    upper: Point
    log_evidence: Scalar


class ExactState(eqx.Module):
    """Present draws, and what the next posterior is computed from."""

    draws: Particles
    memory: GaussianTruth | GridMemory


class Exact(Method):
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
        zero = jnp.zeros((), points.dtype)
        return ExactState(draws, GridMemory(empty_history(model, self.capacity), middle - reach, middle + reach, zero))

    def update(self, key: Key, model: Model, state: ExactState, observation: Observation) -> tuple[ExactState, Info]:
        observation = edge.accept_observation(model, observation)
        truth: Truth
        memory: GaussianTruth | GridMemory
        if isinstance(state.memory, GaussianTruth):
            truth = memory = kalman_step(model, state.memory, observation)
            gained = memory.log_evidence - state.memory.log_evidence
        else:
            history = state.memory.history.append(model, observation)
            truth = posterior_on_grid(model, history, state.memory.lower, state.memory.upper, self.cells)
            gained = truth.log_evidence - state.memory.log_evidence
            memory = GridMemory(history, state.memory.lower, state.memory.upper, truth.log_evidence)
        points = truth.sample(key, state.draws.num_particles)
        return ExactState(equally_weighted(points, truth.log_density(points)), memory), Info(log_predictive=gained)

    def particles(self, state: ExactState) -> Particles:
        return state.draws

    def unsupported(self, model: Model) -> str | None:
        if is_linear_gaussian(model):
            return None
        if isinstance(model, StateSpaceModel) or int(model.dim) != 2:
            return "no formula or grid gives its posterior; take long runs of NUTS (`pfbr.metrics.nuts`) as the truth."
        return None


def posterior_on_grid(model: Model, history: History, lower: Point, upper: Point, cells: int) -> GridTruth:
    """The posterior given all stored observations, on a box narrowed three times to where it lives."""

    def log_joint(points):
        def include(i, total):
            return total + jax.vmap(lambda x: history.stored.log_likelihood(model, x, i))(points)

        return jax.lax.fori_loop(0, history.count, include, jax.vmap(model.log_prior)(points))

    box = box_of_mass(log_joint, lower, upper, cells=cells, refinements=3)
    return grid_from_log_density(log_joint, *box, cells=cells)
