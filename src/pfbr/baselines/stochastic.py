"""What the gradient-based rivals share: the score of the posterior from stored data, all of it or a random batch."""

import jax
from jax import numpy as jnp

from pfbr.errors import InputError
from pfbr.inference.history import History
from pfbr.models.base import Model
from pfbr.typing import Key, PerParticle, Points


def posterior_scores(key: Key, model: Model, history: History, points: Points, batch: int | None) -> Points:
    """∇ log p(x | o_1 … o_m) at each point, unbiased; exact where `batch` is None."""
    prior = jax.vmap(jax.grad(model.log_prior))(points)
    if batch is None:
        return prior + jax.vmap(lambda x: history.score(model, x))(points)
    rows, factor = history.batch(key, batch)

    def likelihood(x):
        one = jax.grad(lambda at, i: rows.log_likelihood(model, at, i))
        return jnp.sum(jax.vmap(one, (None, 0))(x, jnp.arange(batch)), axis=0)

    return prior + factor * jax.vmap(likelihood)(points)


def posterior_values(key: Key, model: Model, history: History, points: Points, batch: int | None) -> PerParticle:
    """log p(x, o_1 … o_m) at each point, unbiased; exact where `batch` is None."""
    prior = jax.vmap(model.log_prior)(points)
    if batch is None:
        return prior + jax.vmap(lambda x: history.log_likelihood(model, x))(points)
    rows, factor = history.batch(key, batch)

    def likelihood(x):
        return jnp.sum(jax.vmap(lambda i: rows.log_likelihood(model, x, i))(jnp.arange(batch)))

    return prior + factor * jax.vmap(likelihood)(points)


def positive(name: str):
    """A converter that refuses a number that is not above zero, and leaves traced values alone."""

    def convert(value):
        if isinstance(value, int | float) and value <= 0:
            raise InputError(f"`{name}` must be above 0; got {value}.")
        return value

    return convert
