"""Smoothing of a recorded stream and of a session's last reports: which way, and what is refused."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

from pfbr.checks import checked_count
from pfbr.errors import InputError
from pfbr.inference.method import Method, Recorded, State, Stream
from pfbr.inference.rows import Row
from pfbr.inference.smoothing.ancestors import replayed, traced
from pfbr.inference.smoothing.backward import Clouds, SmoothedClouds, backward
from pfbr.inference.smoothing.result import Smoothed
from pfbr.models.base import Model, StateSpaceModel, has_parameters, offers
from pfbr.models.conditions import Conditions, bind
from pfbr.models.needs import all_needs
from pfbr.models.unknowns import Unknowns
from pfbr.particles.resampling import systematic
from pfbr.typing import Key

SALT = 0x5300  # keys of smoothing are other ones than those of steps


def check_moves(model: Model) -> None:
    """Refuse an unknown that stands still."""
    if not isinstance(model, StateSpaceModel):
        raise InputError(
            f"{type(model).__name__} has an unknown that stands still: the last posterior is that of all stages. "
            "Smoothing is for a `StateSpaceModel`."
        )
    if has_parameters(model):
        raise InputError(
            f"{type(model).__name__} has parameters beside its state, and every value of them has states of its own: "
            "smooth it with the parameters fixed."
        )


def checked_lag(lag: int | None, *, kept: int, undo: int) -> int:
    """How many reports to go back, at most as many as a session has kept."""
    wanted = kept if lag is None else checked_count("lag", lag, least=1, why="a number of reports to go back")
    if wanted > kept or kept == 0:
        why = f"it keeps {undo}: make it with a larger `undo`" if kept == undo else f"{kept} can be taken back"
        raise InputError(f"there are no {wanted or 1} reports that this session could go back, since {why}.")
    return wanted


def smooth_run(key: Key, model: Model, stream: Stream, said: Recorded, *, many: bool) -> Smoothed:
    """Every stage of a recorded stream given all of it."""
    key = jax.random.fold_in(key, SALT)
    clouds = Clouds(said.particles.points, said.particles.log_weights)
    way, one = ("backward", _backward_stream) if offers(model, "log_transition") else ("ancestors", _traced_stream)
    found = (_each(one) if many else one)(key, model, stream, clouds)
    return Smoothed(found, way, Unknowns.of(model))


def smooth_kept(key: Key, method: Method, model: Model, states: Sequence[State], rows: Sequence[Row]) -> Smoothed:
    """A session's last states given all that it has seen; each of `rows` led from one of them to the next."""
    key = jax.random.fold_in(jax.random.fold_in(key, SALT), states[-1].stage)
    each = [method.particles(state.own) for state in states]
    clouds = Clouds(jnp.stack([one.points for one in each]), jnp.stack([one.log_weights for one in each]))
    way, one = ("backward", _backward_kept) if offers(model, "log_transition") else ("ancestors", _traced_kept)
    return Smoothed(one(key, model, stream_of(rows), clouds, states[0].time), way, Unknowns.of(model))


def stream_of(rows: Sequence[Row]) -> Stream:
    """Rows one after the other as a stream; masks and times where any of them has some."""
    shape = np.shape(rows[0].observation)
    masked, timed = any(row.observed is not None for row in rows), any(row.dt is not None for row in rows)
    one = jnp.ones((), jnp.result_type(float))
    return Stream(
        jnp.stack([jnp.asarray(row.observation) for row in rows]),
        jnp.stack([one if row.dt is None else jnp.asarray(row.dt) for row in rows]) if timed else None,
        jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves]), *[row.inputs for row in rows]),
        jnp.stack([jnp.ones(shape, bool) if row.observed is None else jnp.asarray(row.observed) for row in rows])
        if masked
        else None,
    )


def conditions_along(model: Model, stream: Stream, begin: Any = 0.0) -> Conditions:
    """What came with each row of a stream that begins at a time."""
    words = all_needs(model)
    length = stream.observations.shape[0]
    elapsed = jnp.ones(length, jnp.result_type(float)) if stream.dt is None else stream.dt
    times = begin + jnp.cumsum(elapsed) if "time" in words else None
    return Conditions(stream.dt, times, stream.inputs if "inputs" in words else None, stream.observed)


@eqx.filter_jit
def _backward_stream(key: Key, model: Any, stream: Stream, clouds: Clouds) -> SmoothedClouds:
    return backward(key, model, clouds, conditions_along(model, stream))


@eqx.filter_jit
def _backward_kept(key: Key, model: Any, stream: Stream, clouds: Clouds, time: Any) -> SmoothedClouds:
    conditions = conditions_along(model, stream, time)
    padded = jax.tree.map(lambda leaf: jnp.concatenate([leaf[:1], leaf]), conditions)  # of the first cloud: not used
    return backward(key, model, clouds, padded)


@eqx.filter_jit
def _traced_stream(key: Key, model: Any, stream: Stream, clouds: Clouds) -> SmoothedClouds:
    length, n, d = clouds.points.shape
    many = replayed(n, length, d)
    first = bind(model, Conditions())
    begin = jax.vmap(first.sample_prior)(jax.random.split(key, many))
    found = traced(key, model, begin, stream.observations, conditions_along(model, stream), n)
    return jax.tree.map(lambda leaf: leaf[1:], found)  # the prior is no stage of a run


@eqx.filter_jit
def _traced_kept(key: Key, model: Any, stream: Stream, clouds: Clouds, time: Any) -> SmoothedClouds:
    length, n, d = clouds.points.shape
    kept = systematic(key, clouds.log_weights[0], replayed(n, length, d))
    conditions = conditions_along(model, stream, time)
    return traced(key, model, clouds.points[0][kept], stream.observations, conditions, n)


def _each(one):
    """Many streams, one after the other: memory does not grow with their number."""

    @eqx.filter_jit
    def all_of_them(key, model, streams, clouds):
        keys = jax.vmap(lambda s: jax.random.fold_in(key, s))(jnp.arange(streams.observations.shape[0]))
        return jax.lax.map(lambda each: one(each[0], model, each[1], each[2]), (keys, streams, clouds))

    return all_of_them
