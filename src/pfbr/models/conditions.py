"""A model under the conditions of one observation: the plain functions of x that every method works with.

What came with an observation (elapsed time, inputs, which components were seen) and, for models with parameters, one
value of these, is handed to the model's methods as they ask for it. Named and constrained unknowns become one flat
vector of free numbers. A method of inference therefore sees `log_likelihood(x, observation)` and nothing else.
"""

from typing import Any

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Bool

from pfbr.errors import ModelError
from pfbr.models.base import LinearGaussian, Model, StateSpaceModel, has_observations, has_parameters
from pfbr.models.needs import METHODS, all_needs, needs
from pfbr.models.replaced_prior import ReplacedPrior
from pfbr.models.unknowns import Unknowns
from pfbr.typing import Key, Observation, Point, Scalar


class Conditions(eqx.Module):
    """What came with one observation; None is what did not come.

    `dt` None means one ordinary step; 0 means another report at the same instant. `observed` None means all of it.
    """

    dt: Any = None  # a number, or one for each of many rows along the leading axis, as all fields may have it
    time: Any = None
    inputs: Any = None
    observed: Any = None
    params: Any = None

    @property
    def empty(self) -> bool:
        return all(value is None for value in (self.dt, self.time, self.inputs, self.observed, self.params))


class _Bound(Model):
    """What both kinds of bound models share."""

    model: Model
    conditions: Conditions
    shape: tuple[int, ...] | None = eqx.field(static=True, default=None)  # of an observation, where one was seen

    @property
    def dim(self) -> int:
        return int(self.model.dim)

    @property
    def _unknowns(self) -> Unknowns | None:
        return Unknowns.of(self.model)

    def _given(self, method: str) -> dict[str, Any]:
        """The keywords that a method of the model asks for."""
        given = {}
        for word in needs(self.model, method):
            value = getattr(self.conditions, word)
            if word == "dt" and value is None:
                value = jnp.ones(())
            if value is None and word == "observed":
                value = jnp.ones(self.shape or (), bool) if self.shape is not None else None
            if value is None:
                raise ModelError(_missing(self.model, method, word))
            given[word] = value
        return given

    def _own(self, x: Point):
        """x as the model's own methods want it."""
        unknowns = self._unknowns
        return x if unknowns is None else unknowns.constrain(x)

    def _flat(self, x) -> Point:
        unknowns = self._unknowns
        return x if unknowns is None else unknowns.unconstrain(x)

    def _density(self, method: str, x: Point, *args) -> Scalar:
        """A density of x on the user's scale as one of the free numbers."""
        value = getattr(self.model, method)(self._own(x), *args, **self._given(method))
        unknowns = self._unknowns
        return value if unknowns is None else value + unknowns.log_det(x)

    def sample_prior(self, key: Key) -> Point:
        if isinstance(self.model, ReplacedPrior):
            return self.model.sample_free_prior(key)
        return self._flat(self.model.sample_prior(key, **self._given("sample_prior")))

    def log_prior(self, x: Point) -> Scalar:
        if isinstance(self.model, ReplacedPrior):
            return self.model.log_free_prior(x)
        return self._density("log_prior", x)

    def prior_from_normal(self, z: Point) -> Point | None:
        return self._flat(self.model.prior_from_normal(z, **self._given("prior_from_normal")))

    def each_log_likelihood(self, x: Point, observation: Observation) -> Array:
        """As the model says it: one number, or one for each component of the observation."""
        value = self.model.log_likelihood(self._own(x), observation, **self._given("log_likelihood"))
        return jnp.asarray(value) if isinstance(value, float) else value

    def log_likelihood(self, x: Point, observation: Observation) -> Scalar:
        value = self.each_log_likelihood(x, observation)
        observed = self.conditions.observed
        if jnp.ndim(value) > 0:  # one for each component: those that were not seen say nothing
            return jnp.sum(value if observed is None else jnp.where(observed, value, 0.0))
        return value if observed is None else jnp.where(jnp.any(observed), value, 0.0)

    def sample_observation(self, key: Key, x: Point) -> Observation:
        return self.model.sample_observation(key, self._own(x), **self._given("sample_observation"))

    def linear_gaussian(self) -> LinearGaussian | None:
        if self._unknowns is not None:
            return None
        return self.model.linear_gaussian(**self._given("linear_gaussian"))

    def sample_inputs(self, key: Key) -> Any:
        return self.model.sample_inputs(key)

    def sample_dt(self, key: Key) -> Scalar:
        return self.model.sample_dt(key)


class BoundModel(_Bound):
    """A model at rest, and what came with one observation."""


class BoundStateSpaceModel(_Bound, StateSpaceModel):
    """A model that moves, and what came with one observation. With dt = 0 the unknown stays where it is."""

    model: StateSpaceModel

    @property
    def _still(self) -> Bool[Array, ""] | None:
        dt = self.conditions.dt
        return None if dt is None else dt == 0

    def _or_stay(self, moved: Point, x: Point) -> Point:
        return moved if self._still is None else jnp.where(self._still, x, moved)

    def sample_transition(self, key: Key, x: Point) -> Point:
        moved = self.model.sample_transition(key, self._own(x), **self._given("sample_transition"))
        return self._or_stay(self._flat(moved), x)

    def log_transition(self, x_next: Point, x: Point) -> Scalar:
        return self._density("log_transition", x_next, self._own(x))

    def transition_from_normal(self, x: Point, z: Point) -> Point | None:
        moved = self.model.transition_from_normal(self._own(x), z, **self._given("transition_from_normal"))
        return self._or_stay(self._flat(moved), x)

    def transition_mean_and_std(self, x: Point) -> tuple[Point, Point] | None:
        if self._unknowns is not None:
            return None
        return self.model.transition_mean_and_std(x, **self._given("transition_mean_and_std"))


def bind(
    model: Model, conditions: Conditions, *, shape: tuple[int, ...] | None = None, seen: Observation | None = None
) -> Model:
    """The model under these conditions; itself where it asks for nothing and nothing is special.

    `seen` is an observation, where there is one: its shape tells whether the likelihood is one number.
    """
    if isinstance(model, _Bound):
        model = model.model
    plain = not all_needs(model) and Unknowns.of(model) is None
    at_rest = not isinstance(model, StateSpaceModel)
    if at_rest and conditions.dt is not None:
        conditions = eqx.tree_at(lambda c: c.dt, conditions, None) if "dt" not in all_needs(model) else conditions
    if (
        plain
        and conditions.observed is None
        and conditions.dt is None
        and shape is None
        and not _componentwise(model, seen)
    ):
        return model
    kind: Any = BoundModel if at_rest else BoundStateSpaceModel
    return kind(model, conditions, shape)


def conditions_of(model: Model) -> Conditions:
    """What a model is bound to; nothing for one that is not."""
    return model.conditions if isinstance(model, _Bound) else Conditions()


def rebind(model: Model, conditions: Conditions) -> Model:
    """The same model under the conditions of another observation."""
    return eqx.tree_at(lambda m: m.conditions, model, conditions) if isinstance(model, _Bound) else model


def unbound(model: Model) -> Model:
    """The model as the user wrote it."""
    return model.model if isinstance(model, _Bound) else model


def stays(model: Model) -> Bool[Array, ""] | None:
    """Whether the unknown stays where it is before this observation (dt = 0); None: it never does."""
    return model._still if isinstance(model, BoundStateSpaceModel) else None


def observation_shape(model: Model) -> tuple[int, ...] | None:
    """Shape of one observation, or None where the model cannot draw one and none was seen."""
    if isinstance(model, _Bound) and model.shape is not None:
        return model.shape
    if not has_observations(model):
        return None
    example = model if isinstance(model, _Bound) else example_of(model)
    if example is None:
        return None
    drawn = jax.eval_shape(example.sample_observation, jax.random.key(0), jnp.zeros(int(model.dim)))
    return tuple(drawn.shape)


def example_of(model: Model, inputs: Any = None) -> Model | None:
    """The model under conditions that it could meet, to see shapes with; None where its inputs are not known and none
    are given."""
    words = all_needs(model)
    key, zero = jax.random.key(0), jnp.zeros(())
    params = None
    if "inputs" in words and inputs is None:
        try:
            inputs = jax.eval_shape(model.sample_inputs, key)
        except ModelError:
            return None
        inputs = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), inputs)
    if "params" in words:
        if not has_parameters(model):
            raise ModelError(_missing(model, next(m for m in METHODS if "params" in needs(model, m)), "params"))
        params = jax.eval_shape(model.sample_parameters, key)  # type: ignore[attr-defined]
        params = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), params)
    given = Conditions(zero + 1 if "dt" in words else None, zero if "time" in words else None, inputs, None, params)
    return bind(model, given)


def _componentwise(model: Model, seen: Observation | None) -> bool:
    """Whether the likelihood is one number for each component; found by tracing it where shapes are known."""
    if seen is None and not has_observations(model):
        return False
    x = jnp.zeros(int(model.dim))
    try:
        drawn: Any = seen
        if drawn is None:
            drawn = jax.eval_shape(model.sample_observation, jax.random.key(0), x)
        return jax.eval_shape(model.log_likelihood, x, jnp.zeros(drawn.shape, drawn.dtype)).ndim > 0
    except (Exception, SystemExit):
        return False  # the checks of the edge say what is wrong with it


def _missing(model: Model, method: str, word: str) -> str:
    how = {
        "inputs": "pass it with the observation (`update(y, inputs=…)`, `run(…, inputs=…)`)",
        "time": "pass it with the observation (`update(y, time=…)`, `run(…, times=…)`)",
        "params": "the model must have `sample_parameters(key)` and `log_parameters(params)`",
        "observed": "it is given once an observation has a shape",
    }[word]
    return f"`{type(model).__name__}.{method}` names `{word}`, which was not given: {how}."
