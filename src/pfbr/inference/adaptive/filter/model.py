"""A user's model as a filter asks for it: functions of one state, of elapsed time, and of what came with a report."""

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Bool

from pfbr.models.base import StateSpaceModel, offers
from pfbr.models.conditions import Conditions, bind, conditions_of, example_of, unbound
from pfbr.models.dependence import depends_on_first
from pfbr.models.needs import needs
from pfbr.typing import Key, Observation, PerParticle, Point, Points, Scalar


class FilterModel(eqx.Module):
    """The model of a report is bound to the report's own conditions, so that reports can be replayed.

    `noise_dim` is how many standard normals a transition takes: none where the dynamics are deterministic.
    """

    model: StateSpaceModel
    noise_dim: int = eqx.field(static=True)
    linear: bool = eqx.field(static=True)  # it says that it is linear and Gaussian

    @property
    def dim(self) -> int:
        return int(self.model.dim)

    def offers(self, method: str) -> bool:
        return offers(self.model, method)

    def at(self, conditions: Conditions, dt: Scalar | None = None) -> StateSpaceModel:
        given = conditions if dt is None else eqx.tree_at(lambda c: c.dt, conditions, dt, is_leaf=lambda c: c is None)
        return bind(self.model, given)  # type: ignore[return-value]

    def first_at(self) -> StateSpaceModel:
        return bind(self.model, Conditions())  # type: ignore[return-value]

    def sample_transition(self, key: Key, x: Point, dt: Scalar, conditions: Conditions) -> Point:
        return self.at(conditions, dt).sample_transition(key, x)

    def transition_from_normal(self, x: Point, z: Point, dt: Scalar, conditions: Conditions) -> Point:
        return self.at(conditions, dt).transition_from_normal(x, z)  # type: ignore[return-value]

    def log_transition(self, x_next: Point, x: Point, dt: Scalar, conditions: Conditions) -> Scalar:
        return self.at(conditions, dt).log_transition(x_next, x)

    def log_likelihood(self, x: Point, observation: Observation, conditions: Conditions) -> Scalar:
        return bind(self.model, conditions, shape=observation.shape).log_likelihood(x, observation)

    def sample_observation(self, key: Key, x: Point, conditions: Conditions) -> Observation:
        return self.at(conditions).sample_observation(key, x)


def filter_model(model: StateSpaceModel) -> FilterModel:
    """From a model as a method gets it."""
    inner = unbound(model)
    example = model if not conditions_of(model).empty or not needs(inner, "sample_transition") else example_of(inner)
    assert isinstance(example, StateSpaceModel)  # a model that is asked to move has met its first report
    key, x = jax.random.key(0), jnp.zeros(int(inner.dim))
    noisy = depends_on_first(example.sample_transition, key, x)
    linear = offers(inner, "linear_gaussian") and example.linear_gaussian() is not None
    return FilterModel(inner, int(inner.dim) if noisy else 0, linear)  # type: ignore[arg-type]


def was_observed(conditions: Conditions) -> Bool[Array, ""]:
    """A report in which nothing was seen is a missing one: time passes, nothing is learned."""
    return jnp.asarray(True) if conditions.observed is None else jnp.any(conditions.observed)


def undefined_share(model: FilterModel, points: Points, observation: Observation, conditions: Conditions) -> Scalar:
    """The share of the points at which the log likelihood is NaN: a fault of the model, which a session refuses."""
    values = jax.vmap(lambda x: model.log_likelihood(x, observation, conditions))(points)
    return jnp.mean(jnp.isnan(values), dtype=points.dtype)


def log_likelihoods(
    model: FilterModel, points: Points, observation: Observation, conditions: Conditions
) -> PerParticle:
    """The log likelihood of each point; −inf where the model's answer is no number."""
    values = jax.vmap(lambda x: model.log_likelihood(x, observation, conditions))(points)
    return jnp.where(jnp.isnan(values), -jnp.inf, values)
