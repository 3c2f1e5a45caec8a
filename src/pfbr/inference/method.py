"""The contract of every online method, and the pure functions that run one: `init`, `step`, and a scan over a stream.

A method is three pure functions of explicit state: `init`, `update`, `particles`. State is what the next step needs;
info is for looking. The operator and every rival keep this contract, so that one loop, one judge and one set of tests
serve all of them. A method sees a model under the conditions of one observation (`models.conditions`), as plain
functions of a flat x.

Keys: step m of a stream has the key `fold_in(key, m)`, m = 0 being the start; stream s of many has `fold_in(key, s)`.
A session, a recorded stream, a task of training: all follow this, so that one seed gives the same particles everywhere.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Int

from pfbr.inference.info import Info, Move
from pfbr.inference.progress import tell
from pfbr.models.base import Model, has_observations
from pfbr.models.conditions import Conditions, bind
from pfbr.models.needs import all_needs
from pfbr.particles.particles import Particles
from pfbr.particles.summation import CompensatedSum
from pfbr.typing import Key, Observation, Observations


class Method(eqx.Module):
    """One way to update a posterior when an observation arrives."""

    @abstractmethod
    def init(self, key: Key, model: Model, num_particles: int) -> Any:
        """The state before any observation."""

    @abstractmethod
    def update(self, key: Key, model: Model, state: Any, observation: Observation) -> tuple[Any, Info]:
        """The state after one more observation, and what is worth knowing about the step."""

    @abstractmethod
    def particles(self, state: Any) -> Particles:
        """The current posterior as weighted particles."""

    def weigh(self, key: Key, model: Model, state: Any, observation: Observation) -> tuple[Any, Info, Array] | None:
        """A cheap first try: state and info after weighing alone, and whether that is enough. What `update` would give
        where it is; None for methods that have no such try."""
        return None

    def move(self, key: Key, model: Model, state: Any, observation: Observation) -> tuple[Any, Info]:
        """What `update` gives where `weigh` was not enough; without weighing again there is less to compile."""
        return self.update(key, model, state, observation)

    def is_full(self, state: Any) -> bool:
        """Whether `make_room` has to come before the next `weigh` or `move`; `update` sees to that by itself."""
        return False

    def make_room(self, model: Model, state: Any) -> Any:
        """The state with room for another observation."""
        return state

    def parameters(self, model: Model, state: Any) -> Any:
        """Static parameters beside the state, one for each particle; None for methods and models without."""
        return None

    def unsupported(self, model: Model) -> str | None:
        """Why this method cannot do the model, in a sentence; None where it can."""
        return None


class State(eqx.Module):
    """A method's own state, how many observations made it, and their log evidence."""

    own: Any
    stage: Int[Array, ""]
    log_evidence: CompensatedSum
    time: Array  # since the start, in the units of dt


def step_key(key: Key, stage: int | Array) -> Key:
    """The key of one step of a stream; stage 0 is the start."""
    return jax.random.fold_in(key, stage)


def start(
    key: Key,
    method: Method,
    model: Model,
    num_particles: int,
    example: Conditions | None = None,
    shape: tuple[int, ...] | None = None,
) -> State:
    """The state before any observation; inputs are trusted (see `pfbr.init` for the checked edge).

    `example` and the `shape` of an observation tell methods that store rows what these will look like.
    """
    model = bind(model, example or Conditions(), shape=None if has_observations(model) else shape)
    zero = jnp.zeros((), jnp.result_type(float))
    own = method.init(step_key(key, 0), model, num_particles)
    return State(own, jnp.zeros((), jnp.int32), CompensatedSum.zero(), zero)


class Given(eqx.Module):
    """What comes with one observation: elapsed time, inputs, the mask of what was seen; None is what did not come."""

    dt: Any = None
    inputs: Any = None
    observed: Any = None


def advance(
    key: Key, method: Method, model: Model, state: State, observation: Observation, given: Given = Given()
) -> tuple[State, Info]:
    """The state after one more observation, which has no NaN any more. `key` is this step's own."""
    return _advanced(method.update, key, model, state, observation, given)


def try_weighing(
    key: Key, method: Method, model: Model, state: State, observation: Observation, given: Given = Given()
) -> tuple[State, Info, Array] | None:
    """The same by weighing alone, and whether that is enough; None where the method has no such try."""
    bound, time = _bound(model, state, observation, given)
    tried = method.weigh(key, bound, state.own, observation)
    if tried is None:
        return None
    own, info, enough = tried
    return *_counted(state, own, info, time, given), enough


def advance_by_moving(
    key: Key, method: Method, model: Model, state: State, observation: Observation, given: Given = Given()
) -> tuple[State, Info]:
    """The same as `advance` where weighing was not enough."""
    return _advanced(method.move, key, model, state, observation, given)


def _advanced(
    update: Callable, key: Key, model: Model, state: State, observation: Observation, given: Given
) -> tuple[State, Info]:
    bound, time = _bound(model, state, observation, given)
    own, info = update(key, bound, state.own, observation)
    return _counted(state, own, info, time, given)


def with_room(method: Method, model: Model, state: State, observation: Observation, given: Given = Given()) -> State:
    """The state with room for another observation like this one."""
    bound, _ = _bound(model, state, observation, given)
    return eqx.tree_at(lambda s: s.own, state, method.make_room(bound, state.own))


def _bound(model: Model, state: State, observation: Observation, given: Given) -> tuple[Model, Array]:
    """The model under the conditions of this observation, and the time since the start."""
    words = all_needs(model)
    elapsed = jnp.ones((), state.time.dtype) if given.dt is None else jnp.asarray(given.dt, state.time.dtype)
    time = state.time + elapsed
    conditions = Conditions(
        None if given.dt is None else elapsed,
        time if "time" in words else None,
        given.inputs if "inputs" in words else None,
        given.observed,
    )
    shape = None if given.observed is None and "observed" not in words else jnp.shape(observation)
    return bind(model, conditions, shape=shape, seen=observation), time


def _counted(state: State, own: Any, info: Info, time: Array, given: Given) -> tuple[State, Info]:
    """The state with the step counted, and its evidence summed."""
    gained, move = info.log_predictive, info.move
    if given.observed is not None:  # a gap adds nothing, to the last bit
        seen = jnp.any(given.observed)
        gained = None if gained is None else jnp.where(seen, gained, 0.0)
        move = None if move is None else jnp.where(seen, move, int(Move.NONE))
    total = state.log_evidence if gained is None else state.log_evidence.add(gained)
    info = eqx.tree_at(
        lambda i: (i.log_predictive, i.log_evidence, i.move),
        info,
        (gained, None if gained is None else total.value, move),
        is_leaf=lambda leaf: leaf is None,
    )
    return State(own, state.stage + 1, total, time), info


class Recorded(eqx.Module):
    """What a method said after each of T observations, as JAX arrays; `particles` and `info` lead with the stage.

    `before` and `parameters_before` are what it began with. `kept` holds the states before the last few observations,
    that before observation i at place i modulo their number.
    """

    particles: Particles
    info: Info
    last: State
    parameters: Any = None
    before: Particles | None = None
    parameters_before: Any = None
    kept: State | None = None


class Stream(eqx.Module):
    """Observations (T, …) without NaN, and what came with them; None is what did not come."""

    observations: Observations
    dt: Array | None = None
    inputs: Any = None
    observed: Array | None = None


@eqx.filter_jit
def record(
    key: Key,
    method: Method,
    model: Model,
    stream: Stream | Observations,
    num_particles: int,
    keep: int = 0,
    progress: bool = False,
) -> Recorded:
    """Run one stream from the start, compiled as one scan; inputs are trusted (see `pfbr.run` for the checked edge)."""
    stream = stream if isinstance(stream, Stream) else Stream(jnp.asarray(stream))
    begun = start(key, method, model, num_particles, _first(stream, model), stream.observations.shape[1:])
    return _recorded(key, method, model, begun, stream, jnp.zeros((), jnp.int32), keep, progress)


@eqx.filter_jit
def record_on(
    key: Key,
    method: Method,
    model: Model,
    begun: State,
    stream: Stream,
    stage: Any,
    keep: int = 0,
    progress: bool = False,
) -> Recorded:
    """Go on with a stream that has come to `stage`, compiled as one scan."""
    return _recorded(key, method, model, begun, stream, stage, keep, progress)


class _Carried(eqx.Module):
    state: State
    kept: State | None


def _recorded(
    key: Key, method: Method, model: Model, begun: State, stream: Stream, stage: Array, keep: int, progress: bool
) -> Recorded:
    length = stream.observations.shape[0]
    keep = min(keep, length)
    room = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (keep, *jnp.shape(leaf))), begun) if keep else None

    def one(carried, step):
        index, row = step
        given = Given(row.dt, row.inputs, row.observed)
        number = stage + index + 1
        kept = carried.kept
        if keep:
            kept = jax.tree.map(lambda buffer, leaf: buffer.at[index % keep].set(leaf), kept, carried.state)
        state, info = advance(step_key(key, number), method, model, carried.state, row.observations, given)
        if progress:
            tell(index, length)
        return _Carried(state, kept), (method.particles(state.own), info, method.parameters(model, state.own))

    steps = (jnp.arange(length, dtype=jnp.int32), stream)
    last, (particles, info, parameters) = jax.lax.scan(one, _Carried(begun, room), steps)
    before = method.particles(begun.own), method.parameters(model, begun.own)
    return Recorded(particles, info, last.state, parameters, *before, last.kept)


@eqx.filter_jit
def record_many(
    key: Key,
    method: Method,
    model: Model,
    streams: Stream | Observations,
    num_particles: int,
    progress: bool = False,
) -> Recorded:
    """Many streams (S, T, …) at once, each with a key of its own."""
    streams = streams if isinstance(streams, Stream) else Stream(jnp.asarray(streams))
    keys = jax.vmap(lambda s: jax.random.fold_in(key, s))(jnp.arange(streams.observations.shape[0]))
    return jax.vmap(lambda k, one: record(k, method, model, one, num_particles, 0, progress))(keys, streams)


def _first(stream: Stream, model: Model) -> Conditions:
    """Conditions like those of the stream's observations: a method that stores them sees their shapes."""
    words = all_needs(model)
    one = jax.tree.map(lambda leaf: leaf[0], stream)
    return Conditions(
        one.dt, jnp.zeros(()) if "time" in words else None, one.inputs if "inputs" in words else None, one.observed
    )
