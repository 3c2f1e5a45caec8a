"""What a user writes: a prior and a likelihood for one particle and one observation; batching is ours.

A method names by keyword what it needs beyond its first arguments, out of `dt` (elapsed time), `time`, `inputs` (any
tree of arrays), `params` (of models with `sample_parameters`) and `observed` (a mask), and is given that and no more.
"""

import inspect
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import equinox as eqx
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.errors import ModelError
from pfbr.typing import Key, Observation, Point, Real, Scalar


class LinearGaussian(NamedTuple):
    """x_0 ~ N(mean, cov); x_m = A x_{m-1} + a + N(0, Q); o_m = B x_m + b + N(0, R).

    A model that says it is of this form gets its exact posterior from the Kalman recursion. A model without dynamics
    has A = I and Q = 0; a and b are zero where they are None.
    """

    A: Array
    Q: Array
    B: Array
    R: Array
    mean: Array
    cov: Array
    a: Array | None = None
    b: Array | None = None


class Model(eqx.Module):
    """An unknown x and observations that are independent given x.

    `dim` is the length of the vector x; or `unknowns` names its parts, with shapes and constraints (`pfbr.positive` and
    the like), and methods then get a dict on the user's own scale.
    """

    unknowns: ClassVar[dict[str, Any] | None] = None
    if TYPE_CHECKING:  # a field or a property of the subclass; here it would be a field of all of them
        dim: int

    @abstractmethod
    def sample_prior(self, key: Key) -> Point:
        """One draw of x before any observation."""

    @abstractmethod
    def log_prior(self, x: Point) -> Scalar:
        """Normalised log density of `sample_prior`."""

    @abstractmethod
    def log_likelihood(self, x: Point, observation: Observation) -> Scalar:
        """log p(observation | x): a number, or one for each component where these are independent (missing ones are
        then left out)."""

    def sample_observation(self, key: Key, x: Point) -> Observation:
        """One observation given x: needed to train, to forecast and to calibrate, not to update."""
        raise ModelError(
            f"{type(self).__name__} has no `sample_observation(key, x)`. Simulated streams are drawn with it: "
            "add the method. To update a posterior it is not needed."
        )

    def prior_from_normal(self, z: Point) -> Point | None:
        """The prior as a function of d standard normals, where it is one: it allows draws better than random."""
        return None

    def linear_gaussian(self) -> LinearGaussian | None:
        """The model in matrices, where it is linear and Gaussian; it then has an exact posterior."""
        return None

    def sample_inputs(self, key: Key) -> Any:
        """Inputs of one observation, to simulate streams of a model that names `inputs`."""
        raise ModelError(
            f"{type(self).__name__} names `inputs` and has no `sample_inputs(key)` to simulate them with: add the "
            "method, or pass the inputs."
        )

    def sample_dt(self, key: Key) -> Scalar:
        """The time from one observation to the next, to simulate irregular streams; 1 unless written otherwise."""
        return jnp.ones(())

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if isinstance(cls.__dict__.get("unknowns"), dict) and "dim" not in inspect.get_annotations(cls):
            cls.dim = property(_dim_of_unknowns)


class StateSpaceModel(Model):
    """A model whose unknown moves before each observation, x_m ~ p(x_m | x_{m-1})."""

    @abstractmethod
    def sample_transition(self, key: Key, x: Point) -> Point:
        """One draw of the next x."""

    def log_transition(self, x_next: Point, x: Point) -> Scalar:
        """Normalised log density of `sample_transition`; deterministic or intractable dynamics have none."""
        raise ModelError(f"{type(self).__name__} has no `log_transition(x_next, x)`, which was asked for.")

    def transition_from_normal(self, x: Point, z: Point) -> Point | None:
        """The next x as a function of the present one and d standard normals, where it is one."""
        return None

    def transition_mean_and_std(self, x: Point) -> tuple[Point, Point] | None:
        """Mean of the next x, and the standard deviations (d,) of its noise, where it is normal with the same
        independent noise everywhere: the density of a cloud after the transition is then matrix products."""
        return None

    def sample_parameters(self, key: Key) -> Any:
        """Static parameters beside the state, any tree of arrays; methods that name `params` get them."""
        raise ModelError(f"{type(self).__name__} has no `sample_parameters(key)`.")

    def log_parameters(self, params: Any) -> Scalar:
        """Normalised log density of `sample_parameters`."""
        raise ModelError(f"{type(self).__name__} has no `log_parameters(params)`.")


def _dim_of_unknowns(self) -> int:
    from pfbr.models.unknowns import Unknowns  # only models with named unknowns need it

    unknowns = Unknowns.of(self)
    assert unknowns is not None  # the property is made for classes with `unknowns` only
    return unknowns.size


def offers(model: Model, method: str) -> bool:
    """Whether the model has written an optional method itself; a model around another needs the inner one's too."""
    base = StateSpaceModel if isinstance(model, StateSpaceModel) else Model
    inner = getattr(model, "model", None)
    written = getattr(type(model), method, None) is not getattr(base, method, None)
    return written and (not isinstance(inner, Model) or offers(inner, method))


def has_observations(model: Model) -> bool:
    """Whether the model can draw observations, which training needs."""
    return offers(model, "sample_observation")


def has_parameters(model: Model) -> bool:
    """Whether the model has static parameters beside its state."""
    return isinstance(model, StateSpaceModel) and offers(model, "sample_parameters")


def normal_log_density(x: Array, mean: Real, std: Real) -> Float[Array, "..."]:
    """Log density of independent normals, summed over the last axis."""
    return jnp.sum(normal_log_densities(x, mean, std), axis=-1)


def normal_log_densities(x: Array, mean: Real, std: Real) -> Array:
    """Log density of each of several independent normals."""
    z = (x - mean) / std
    return -0.5 * z**2 - jnp.log(std) - 0.5 * jnp.log(2 * jnp.pi)


__all__ = [
    "LinearGaussian",
    "Model",
    "StateSpaceModel",
    "has_observations",
    "has_parameters",
    "normal_log_densities",
    "normal_log_density",
    "offers",
]
