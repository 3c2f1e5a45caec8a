"""What tells a model from another one: its densities at a few points, which are kept with the answers.

Whatever a model is made of, a file need not know: a restored posterior belongs to the functions that it was found with,
and these are asked again. Models that answer alike are alike.
"""

from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp
from jaxtyping import Array

from pfbr.inference.rows import Row
from pfbr.models.base import Model, StateSpaceModel, has_parameters, offers
from pfbr.models.conditions import Conditions, bind
from pfbr.models.needs import all_needs
from pfbr.models.unknowns import Unknowns

POINTS = 8
SAME = 1e-4  # of the value, or of one: below, rounding on another machine; a scale off by a thousandth shows
DT, TIME = 0.7, 1.3  # an elapsed time and a time that methods are asked about; neither is special
RANDOM = "random numbers"  # draws are compared where these are the same: generators change between versions
DRAWN = ("sample_transition", "sample_observation")


class Fingerprint(eqx.Module):
    """Points, and what the model says there; `row` is one like those of the stream, None before the first."""

    points: Array  # (8, d), flat
    params: Any  # eight of them; None for models without
    row: Row | None
    observations: Array | None  # (8, …)
    values: dict[str, Array]


def fingerprint(model: Model, row: Row | None) -> Fingerprint:
    """Of a model, at draws of its own."""
    probes = _probes(model, row)
    return eqx.tree_at(lambda p: p.values, probes, _values(model, probes))


def differences(model: Model, kept: Fingerprint) -> list[str]:
    """In what the model differs from the one that a fingerprint was taken of, in words; empty where it does not."""
    if kept.points.shape[1:] != (int(model.dim),):
        return [f"it has {model.dim} unknowns where the other had {kept.points.shape[1]}"]
    if has_parameters(model) != (kept.params is not None):
        return [f"it has {'' if has_parameters(model) else 'no '}parameters beside its state, unlike the other"]
    try:
        now = {name: np.asarray(value) for name, value in _values(model, kept).items()}
    except Exception as error:  # a user's functions may fail in any way on what another model was given
        return [f"it cannot be asked what the other was asked ({type(error).__name__}: {error})"]
    then = {name: np.asarray(value) for name, value in kept.values.items()}
    lost = [f"it has no `{name}`, which the other had" for name in then.keys() - now.keys()]
    if lost or now.keys() - then.keys():
        return sorted([*lost, *(f"it has `{name}`, which the other had not" for name in now.keys() - then.keys())])
    same_random = np.array_equal(now[RANDOM], then[RANDOM])
    found = []
    for name, value in now.items():
        if name == RANDOM or (name in DRAWN and not same_random):
            continue
        if value.shape != then[name].shape:
            found.append(f"`{name}` has shape {value.shape[1:]} where it had {then[name].shape[1:]}")
        elif not (same := _same(value, then[name])).all():
            at = np.unravel_index(int(np.argmin(same)), same.shape)
            found.append(f"`{name}` is {value[at]:.6g} where it was {then[name][at]:.6g}")
    return found


def _same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.isclose(a, b, rtol=SAME, atol=SAME, equal_nan=True)


@eqx.filter_jit
def _probes(model: Model, row: Row | None) -> Fingerprint:
    keys = jax.random.split(jax.random.key(0), POINTS)
    params = jax.vmap(model.sample_parameters)(keys) if has_parameters(model) else None  # type: ignore[attr-defined]
    points = jax.vmap(lambda k, p: _asked(model, p, row).sample_prior(k))(keys, params)
    observations = None
    if row is not None:
        observations = jnp.broadcast_to(row.observation, (POINTS, *jnp.shape(row.observation)))
        if offers(model, "sample_observation"):
            draw = lambda k, p, x: _asked(model, p, row).sample_observation(k, x)
            observations = jax.vmap(draw)(keys, params, points)
    return Fingerprint(points, params, row, observations, {})


@eqx.filter_jit
def _values(model: Model, probes: Fingerprint) -> dict[str, Array]:
    keys = jax.random.split(jax.random.key(1), POINTS)
    each = (keys, probes.params, probes.points, jnp.flip(probes.points, 0))
    at = lambda params: _asked(model, params, probes.row)
    values = {
        RANDOM: jax.random.normal(keys[0], (POINTS,)),
        "log_prior": _over(lambda k, p, x, y: at(p).log_prior(x), each),
    }
    if (unknowns := Unknowns.of(model)) is not None:
        values |= {f"unknown {name}": value for name, value in jax.vmap(unknowns.constrain)(probes.points).items()}
    if has_parameters(model):
        values["log_parameters"] = jax.vmap(model.log_parameters)(probes.params)  # type: ignore[attr-defined]
    if probes.row is None:
        return values
    likelihood = lambda k, p, x, o: at(p).log_likelihood(x, o)
    values["log_likelihood"] = _over(likelihood, (keys, probes.params, probes.points, probes.observations))
    if offers(model, "sample_observation"):
        values["sample_observation"] = _over(lambda k, p, x, y: at(p).sample_observation(k, x), each)
    if isinstance(model, StateSpaceModel):
        values["sample_transition"] = _over(lambda k, p, x, y: at(p).sample_transition(k, x), each)
        if offers(model, "log_transition"):
            values["log_transition"] = _over(lambda k, p, x, y: at(p).log_transition(y, x), each)
        if offers(model, "transition_from_normal"):
            values["transition_from_normal"] = _over(lambda k, p, x, y: at(p).transition_from_normal(x, 0.3 * y), each)
    return values


def _over(function: Any, each: tuple) -> Array:
    return jax.vmap(function)(*each)


def _asked(model: Model, params: Any, row: Row | None) -> Any:
    """The model as it is asked: at some time, with the row's inputs, nothing missing."""
    words = all_needs(model)
    float_ = jnp.result_type(float)
    moving = isinstance(model, StateSpaceModel)
    conditions = Conditions(
        jnp.asarray(DT, float_) if "dt" in words or moving else None,
        jnp.asarray(TIME, float_) if "time" in words else None,
        row.inputs if row is not None and "inputs" in words else None,
        None,
        params,
    )
    return bind(model, conditions, shape=None if row is None else jnp.shape(row.observation))
