"""Streams drawn from a model: the unknown, what came with each observation, and the observations."""

from typing import Any

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.models.base import Model, StateSpaceModel, has_parameters, offers
from pfbr.models.conditions import Conditions, bind
from pfbr.models.needs import all_needs
from pfbr.typing import Key, Observations, Point


class Simulated(eqx.Module):
    """A stream of T observations, the unknown behind each of them (free numbers), and what came with them."""

    observations: Observations
    truths: Float[Array, "t d"]
    dt: Float[Array, " t"] | None = None
    inputs: Any = None
    params: Any = None

    @property
    def times(self) -> Float[Array, " t"] | None:
        return None if self.dt is None else jnp.cumsum(self.dt)


def simulate(
    key: Key,
    model: Model,
    length: int,
    *,
    at: Point | None = None,
    dt: Float[Array, " t"] | None = None,
    inputs: Any = None,
    params: Any = None,
) -> Simulated:
    """A stream of `length` observations, from an unknown of the prior or from `at`.

    The unknown of a state-space model moves once before every observation, the first included. Elapsed times, inputs
    and parameters that the model names are drawn from its own `sample_dt`, `sample_inputs` and `sample_parameters`
    where they are not passed.
    """
    prior_key, key = jax.random.split(key)
    with_key, params_key = jax.random.split(jax.random.fold_in(prior_key, 1))
    words = all_needs(model)
    keys = jax.random.split(with_key, length)
    if dt is None and (words & {"dt", "time"} or offers(model, "sample_dt")):
        dt = jax.vmap(lambda k: jnp.asarray(model.sample_dt(k), jnp.result_type(float)))(keys)
    if inputs is None and "inputs" in words:
        inputs = jax.vmap(model.sample_inputs)(keys)
    if params is None and has_parameters(model):
        params = model.sample_parameters(params_key)  # type: ignore[attr-defined]
    times = None if dt is None else jnp.cumsum(dt)
    start_model = bind(model, Conditions(params=params))
    start = start_model.sample_prior(prior_key) if at is None else at

    def advance(x, arrays):
        step_key, one_dt, time, one_inputs = arrays
        given = Conditions(one_dt, time if "time" in words else None, one_inputs, None, params)
        here = bind(model, given)
        move_key, observe_key = jax.random.split(step_key)
        if isinstance(model, StateSpaceModel):
            x = here.sample_transition(move_key, x)  # type: ignore[attr-defined]
        return x, (here.sample_observation(observe_key, x), x)

    steps = (jax.random.split(key, length), dt, times, inputs)
    observations, truths = jax.lax.scan(advance, start, steps)[1]
    return Simulated(observations, truths, dt, inputs, params)
