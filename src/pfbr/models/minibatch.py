"""Many observations at once as one: a model whose single observation is a batch of another model's."""

import equinox as eqx
import jax
from jax import numpy as jnp

from pfbr.errors import InputError
from pfbr.models.base import LinearGaussian, Model, StateSpaceModel
from pfbr.typing import Key, Observation, Point, Scalar


class MiniBatch(Model):
    """p(o_1 … o_L | x) = Π p(o_l | x): one update for `size` observations, shape (L, …)."""

    model: Model
    size: int = eqx.field(static=True)

    def __init__(self, model: Model, size: int):
        if isinstance(model, StateSpaceModel):
            raise InputError(
                "MiniBatch needs a model without dynamics: elsewhere the unknown moves between observations."
            )
        if size < 1:
            raise InputError(f"`size` must be at least 1; got {size}.")
        self.model, self.size = model, size

    @property
    def dim(self) -> int:
        return self.model.dim

    def sample_prior(self, key: Key) -> Point:
        return self.model.sample_prior(key)

    def prior_from_normal(self, z: Point) -> Point | None:
        return self.model.prior_from_normal(z)

    def log_prior(self, x: Point) -> Scalar:
        return self.model.log_prior(x)

    def log_likelihood(self, x: Point, observation: Observation) -> Scalar:
        return jnp.sum(jax.vmap(self.model.log_likelihood, (None, 0))(x, observation))

    def sample_observation(self, key: Key, x: Point) -> Observation:
        return jax.vmap(self.model.sample_observation, (0, None))(jax.random.split(key, self.size), x)

    def linear_gaussian(self) -> LinearGaussian | None:
        """The batch as one long observation: B stacked, R block-diagonal."""
        single = self.model.linear_gaussian()
        if single is None:
            return None
        return single._replace(B=jnp.tile(single.B, (self.size, 1)), R=jnp.kron(jnp.eye(self.size), single.R))
