"""Many observations at once as one: a model whose single observation is a batch of another model's."""

from typing import Any

import equinox as eqx
import jax
from jax import numpy as jnp

from pfbr.errors import InputError
from pfbr.models.base import LinearGaussian, Model, StateSpaceModel
from pfbr.models.needs import needs
from pfbr.typing import Key, Observation, Point, Scalar

EACH = ("inputs", "observed", "time")  # what comes with every member of a batch, along its first axis


class MiniBatch(Model):
    """p(o_1 … o_L | x) = Π p(o_l | x): one update for `size` observations, shape (L, …), and inputs likewise."""

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

    @property
    def unknowns(self):  # type: ignore[override]
        return self.model.unknowns

    def sample_prior(self, key: Key) -> Point:
        return self.model.sample_prior(key)

    def prior_from_normal(self, z: Point) -> Point | None:
        return self.model.prior_from_normal(z)

    def log_prior(self, x: Point) -> Scalar:
        return self.model.log_prior(x)

    def log_likelihood(self, x: Point, observation: Observation, **given: Any) -> Scalar:
        each, common = _split(given)
        one = jax.vmap(lambda o, own: self.model.log_likelihood(x, o, **own, **common))
        return jnp.sum(one(observation, each))

    def sample_observation(self, key: Key, x: Point, **given: Any) -> Observation:
        each, common = _split(given)
        one = jax.vmap(lambda k, own: self.model.sample_observation(k, x, **own, **common))
        return one(jax.random.split(key, self.size), each)

    def sample_inputs(self, key: Key) -> Any:
        return jax.vmap(self.model.sample_inputs)(jax.random.split(key, self.size))

    def linear_gaussian(self, **given: Any) -> LinearGaussian | None:
        """The batch as one long observation: B stacked, R block-diagonal."""
        if any(word in EACH for word in needs(self.model, "linear_gaussian")):
            return None  # every member has matrices of its own
        single = self.model.linear_gaussian(**given)
        if single is None:
            return None
        b = None if single.b is None else jnp.tile(single.b, self.size)
        return single._replace(B=jnp.tile(single.B, (self.size, 1)), R=jnp.kron(jnp.eye(self.size), single.R), b=b)


def _split(given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    return {w: v for w, v in given.items() if w in EACH}, {w: v for w, v in given.items() if w not in EACH}
