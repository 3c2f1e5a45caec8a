"""What a user writes: a prior and a likelihood for one particle and one observation; batching is ours."""

from abc import abstractmethod
from typing import NamedTuple

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array

from pfbr.errors import ModelError
from pfbr.typing import Key, Observation, Point, Scalar


class LinearGaussian(NamedTuple):
    """x_0 ~ N(mean, cov); x_m = A x_{m-1} + N(0, Q); o_m = B x_m + N(0, R).

    A model that says it is of this form gets its exact posterior from the Kalman recursion.
    A model without dynamics has A = I and Q = 0.
    """

    A: Array
    Q: Array
    B: Array
    R: Array
    mean: Array
    cov: Array


class Model(eqx.Module):
    """An unknown x in R^d and observations that are independent given x."""

    dim: eqx.AbstractVar[int]

    @abstractmethod
    def sample_prior(self, key: Key) -> Point:
        """One draw of x before any observation."""

    @abstractmethod
    def log_prior(self, x: Point) -> Scalar:
        """Normalised log density of `sample_prior`."""

    @abstractmethod
    def log_likelihood(self, x: Point, observation: Observation) -> Scalar:
        """log p(observation | x)."""

    def sample_observation(self, key: Key, x: Point) -> Observation:
        """One observation given x: needed to train, not to update."""
        raise ModelError(
            f"{type(self).__name__} has no `sample_observation(key, x)`. Training draws its tasks with it: "
            "add the method, or use `pfbr.gaussian_operator()`, which needs no training."
        )

    def prior_from_normal(self, z: Point) -> Point | None:
        """The prior as a function of d standard normals, where it is one: it allows draws better than random."""
        return None

    def linear_gaussian(self) -> LinearGaussian | None:
        """The model in matrices, where it is linear and Gaussian; it then has an exact posterior."""
        return None


class StateSpaceModel(Model):
    """A model whose unknown moves before each observation, x_m ~ p(x_m | x_{m-1})."""

    @abstractmethod
    def sample_transition(self, key: Key, x: Point) -> Point:
        """One draw of the next x."""

    @abstractmethod
    def log_transition(self, x_next: Point, x: Point) -> Scalar:
        """Normalised log density of `sample_transition`."""

    def transition_from_normal(self, x: Point, z: Point) -> Point | None:
        """The next x as a function of the present one and d standard normals, where it is one."""
        return None

    def transition_mean_and_std(self, x: Point) -> tuple[Point, Point] | None:
        """Mean of the next x, and the standard deviations (d,) of its noise, where it is normal with the same
        independent noise everywhere: the density of a cloud after the transition is then matrix products."""
        return None


def offers(model: Model, method: str) -> bool:
    """Whether the model has written an optional method itself; a model around another needs the inner one's too."""
    base = StateSpaceModel if isinstance(model, StateSpaceModel) else Model
    inner = getattr(model, "model", None)
    written = getattr(type(model), method) is not getattr(base, method)
    return written and (not isinstance(inner, Model) or offers(inner, method))


def has_observations(model: Model) -> bool:
    """Whether the model can draw observations, which training needs."""
    return offers(model, "sample_observation")


def observation_shape(model: Model) -> tuple[int, ...] | None:
    """Shape of one observation, or None where the model cannot draw one and so cannot tell."""
    if not has_observations(model):
        return None
    drawn = jax.eval_shape(model.sample_observation, jax.random.key(0), jnp.zeros(int(model.dim)))
    return tuple(drawn.shape)


def normal_log_density(x: Array, mean: Array | float, std: Array | float) -> Scalar:
    """Log density of independent normals, summed over the last axis."""
    z = (x - mean) / std
    return jnp.sum(-0.5 * z**2 - jnp.log(std) - 0.5 * jnp.log(2 * jnp.pi), axis=-1)
