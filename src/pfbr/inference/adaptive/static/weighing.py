"""A row by weights alone, or by the closed form where that has held so far: the cheap first try of every step."""

from typing import Any

import equinox as eqx
import jax
from jax import Array
from jax import numpy as jnp

from pfbr.inference.adaptive.static.carried import carried_law, carried_prior, with_row
from pfbr.inference.adaptive.static.conjugate import MOST_MISFIT, conjugate_update, is_law, prior_as_law
from pfbr.inference.adaptive.static.diagnostics import info_of
from pfbr.inference.adaptive.static.fresh import TIMES
from pfbr.inference.adaptive.static.state import Move, StaticInfo, StaticSettings, StaticState
from pfbr.inference.adaptive.static.target import Target, row_values
from pfbr.inference.adaptive.static.weights import clean, normalise, uniform_log_weights
from pfbr.particles.pareto import pareto_k
from pfbr.particles.particles import ess


class Weighed(eqx.Module):
    """What weighing says, before it is decided whether that is enough."""

    log_weights: Array  # normalised, with the row
    log_predictive: Array
    ess: Array
    pareto_k: Array
    enough: Array  # bool


def begin(target: Target, state: StaticState) -> StaticState:
    """Before the first row: a Gaussian prior is known exactly. Without this call the closed form is not tried."""
    prior = prior_as_law(target, state.points)
    if target.sample_prior is not None:
        # as many draws again as a fresh look has: a small part of the prior that is elsewhere may hold all the data
        more = target.sample_prior(jax.random.key(0), TIMES * len(state.points))
        misfit = jnp.where(is_law(target, prior.law, more), prior.misfit, jnp.inf)
        points = jnp.where(jnp.isfinite(misfit), prior.points, state.points)
        prior = eqx.tree_at(lambda c: (c.points, c.misfit), prior, (points, misfit))
    state = eqx.tree_at(lambda s: (s.points, s.law, s.misfit), state, (prior.points, prior.law, prior.misfit))
    if state.carried is None:
        return state
    return eqx.tree_at(lambda s: s.carried, state, carried_prior(target, state.points))


def judge(target: Target, state: StaticState, row: Any, settings: StaticSettings) -> Weighed:
    n = state.points.shape[0]
    weighed = clean(state.log_weights + row_values(target, state.points, row))
    log_weights, total = normalise(weighed)
    left = ess(weighed)
    return Weighed(log_weights, total, left, pareto_k(weighed), left >= settings.weigh_ess * n)


def weigh(target: Target, state: StaticState, row: Any, settings: StaticSettings = StaticSettings()):
    """The state and info after weighing alone, and whether that was enough. Compiles in a moment."""
    weighed = judge(target, state, row, settings)
    after, info = absorb(target, state, row, weighed)
    return try_conjugate(target, state, row, after, info, weighed.enough)


def try_conjugate(target: Target, state: StaticState, row: Any, after: StaticState, info: StaticInfo, enough: Array):
    """The closed form where it has held so far and holds for this row; else what weighing said."""

    def closed_form():
        new = conjugate_update(target, state.points, state.law, row)
        misfit = state.misfit + new.misfit
        holds = misfit <= MOST_MISFIT
        n = state.points.shape[0]
        leaves = lambda s: (s.points, s.law, s.log_weights, s.rejuvenations, s.variance, s.misfit, s.log_evidence)
        equal = uniform_log_weights(n, state.points.dtype)
        evidence = state.log_evidence + new.log_predictive
        moved = (new.points, new.law, equal, state.rejuvenations, jnp.zeros_like(state.variance), misfit, evidence)
        closed = eqx.tree_at(leaves, after, moved)
        if state.carried is not None:
            closed = eqx.tree_at(lambda s: s.carried, closed, carried_law(new.law, new.points))
        nan, zero = jnp.full((), jnp.nan, state.points.dtype), jnp.zeros((), jnp.int32)
        size, none = jnp.asarray(n, state.points.dtype), jnp.zeros((), state.points.dtype)
        closed_info = info_of(closed, size, none, new.log_predictive, Move.CONJUGATE, nan, zero, zero, nan, none, nan)
        # left for good: what is carried on is the law as the last row found it
        left = eqx.tree_at(lambda s: (s.misfit, s.variance), after, (jnp.full_like(misfit, jnp.inf), state.variance))
        choose = lambda a, b: jax.tree.map(lambda u, v: jnp.where(holds, u, v), a, b)
        return (*choose((closed, closed_info), (left, info)), holds | enough)

    return jax.lax.cond(state.misfit <= MOST_MISFIT, closed_form, lambda: (after, info, enough))


def absorb(target: Target, state: StaticState, row: Any, weighed: Weighed) -> tuple[StaticState, StaticInfo]:
    after = StaticState(
        state.points,
        weighed.log_weights,
        state.law,
        state.past.append(row),
        state.surrogate,
        state.rejuvenations,
        state.tuning,
        state.variance,
        state.steps + 1,
        state.misfit,
        state.log_evidence + weighed.log_predictive,
        with_row(state.carried, target, state.points, row),
    )
    nan = jnp.full((), jnp.nan, state.points.dtype)
    zero = jnp.zeros((), jnp.int32)
    log_variance = state.variance
    return after, info_of(
        after,
        weighed.ess,
        weighed.pareto_k,
        weighed.log_predictive,
        Move.WEIGHED,
        nan,
        zero,
        zero,
        nan,
        log_variance,
        nan,
    )
