"""What every rival checks before it computes: the model, the number of particles, the shape of an observation."""

import jax
from jax import numpy as jnp

from pfbr.errors import InputError
from pfbr.inference.method import Method
from pfbr.models.base import Model, StateSpaceModel
from pfbr.models.conditions import observation_shape
from pfbr.typing import Key, Observation, Points


def accept(method: Method, model: Model, num_particles: int) -> None:
    """Refuse a model that the method cannot do, and fewer than two particles."""
    name = type(method).__name__
    reason = method.unsupported(model)
    if reason is not None:
        raise InputError(f"{name} cannot do {type(model).__name__}: {reason}")
    if num_particles < 2:
        raise InputError(f"`num_particles` must be at least 2 for {name}; got {num_particles}.")


def accept_observation(model: Model, observation: Observation) -> Observation:
    """The observation as an array of the model's shape; shapes are static, so this costs nothing once compiled."""
    observation = jnp.asarray(observation)
    expected = observation_shape(model)
    if expected is not None and observation.shape != expected:
        raise InputError(
            f"`observation` must have shape {expected} for this {type(model).__name__}; got {observation.shape}. "
            "Pass one observation at a time; for a stream use `pfbr.run`."
        )
    return observation


def needs_dynamics(model: Model, instead: str) -> str | None:
    """The reason to refuse a model without dynamics, or None."""
    if isinstance(model, StateSpaceModel):
        return None
    return f"it needs a StateSpaceModel, whose unknown moves between observations; for this one use {instead}."


def needs_rest(model: Model, instead: str) -> str | None:
    """The reason to refuse a model with dynamics, or None."""
    if not isinstance(model, StateSpaceModel):
        return None
    return f"it needs a model whose unknown does not move between observations; for this one use {instead}."


def prior_points(key: Key, model: Model, num: int) -> Points:
    """`num` draws from the prior."""
    return jax.vmap(model.sample_prior)(jax.random.split(key, num))


def predict(key: Key, model: Model, points: Points) -> Points:
    """The points moved by the dynamics, where the model has any."""
    if not isinstance(model, StateSpaceModel):
        return points
    return jax.vmap(model.sample_transition)(jax.random.split(key, points.shape[0]), points)
