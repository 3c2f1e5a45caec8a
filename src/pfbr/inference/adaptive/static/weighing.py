"""A row by weights alone, or by the closed form where that has held so far: the cheap first try of every step."""

import math
from typing import Any

import equinox as eqx
import jax
from jax import Array
from jax import numpy as jnp

from pfbr.inference.adaptive.static.carried import Carried, carried_law, carried_prior, with_row
from pfbr.inference.adaptive.static.conjugate import MOST_MISFIT, conjugate_update, is_law, prior_as_law
from pfbr.inference.adaptive.static.diagnostics import info_of
from pfbr.inference.adaptive.static.fresh import TIMES
from pfbr.inference.adaptive.static.state import Move, StaticInfo, StaticSettings, StaticState
from pfbr.inference.adaptive.static.target import Target, row_values
from pfbr.inference.adaptive.static.weights import clean, uniform_log_weights, weighed_up
from pfbr.particles.pareto import pareto_k
from pfbr.particles.whitening import Whitening

MANY = 1024  # draws of the prior, beyond which the share that must count falls as one over the root of their number
MOST_ASKED = 16384  # further draws of the prior that are asked whether it is Gaussian


class Weighed(eqx.Module):
    """What weights, or the closed form, make of a row: all that they decide, and nothing that stays as it was."""

    points: Array
    law: Whitening
    log_weights: Array  # normalised, with the row
    variance: Array
    misfit: Array
    carried: Carried | None
    log_predictive: Array
    ess: Array
    pareto_k: Array
    move: Array  # int32
    enough: Array  # bool


def begin(target: Target, state: StaticState) -> StaticState:
    """Before the first row: a Gaussian prior is known exactly. Without this call the closed form is not tried."""
    prior = prior_as_law(target, state.points)
    if target.sample_prior is not None:
        # as many draws again as a fresh look has: a small part of the prior that is elsewhere may hold all the data
        more = target.sample_prior(jax.random.key(0), min(TIMES * len(state.points), MOST_ASKED))
        misfit = jnp.where(is_law(target, prior.law, more), prior.misfit, jnp.inf)
        points = jnp.where(jnp.isfinite(misfit), prior.points, state.points)
        prior = eqx.tree_at(lambda c: (c.points, c.misfit), prior, (points, misfit))
    state = eqx.tree_at(lambda s: (s.points, s.law, s.misfit), state, (prior.points, prior.law, prior.misfit))
    if state.carried is None:
        return state
    return eqx.tree_at(lambda s: s.carried, state, carried_prior(target, state.points))


def least_ess(state: StaticState, settings: StaticSettings) -> Array:
    """The ESS that weighing must leave. Thousands of draws of the prior, spread evenly, are worth keeping: moves would
    take all of them through all rows, and leave them less even."""
    n = state.points.shape[0]
    drawn = math.sqrt(n * min(n, MANY))
    return settings.weigh_ess * jnp.where(state.rejuvenations == 0, drawn, n).astype(state.points.dtype)


def judge(target: Target, state: StaticState, row: Any, settings: StaticSettings) -> Weighed:
    """By weights alone."""
    weighed = clean(state.log_weights + row_values(target, state.points, row))
    log_weights, total, left = weighed_up(weighed)
    return Weighed(
        state.points,
        state.law,
        log_weights,
        state.variance,
        state.misfit,
        with_row(state.carried, target, state.points, row),
        total,
        left,
        pareto_k(weighed),
        jnp.asarray(int(Move.WEIGHED), jnp.int32),
        left >= least_ess(state, settings),
    )


def weigh(target: Target, state: StaticState, row: Any, settings: StaticSettings = StaticSettings()):
    """The state and info after weighing, or the closed form, alone, and whether that was enough. Compiles in a
    moment."""
    weighed = judge(target, state, row, settings)
    # what both leave alone is no part of the choice: it would be copied at every row
    found = jax.lax.cond(state.misfit <= MOST_MISFIT, lambda: closed_form(target, state, row, weighed), lambda: weighed)
    return *absorb(state, row, found), found.enough


def closed_form(target: Target, state: StaticState, row: Any, weighed: Weighed) -> Weighed:
    """The closed form, which has held so far, where it holds for this row; else what weighing said."""
    new = conjugate_update(target, state.points, state.law, row)
    misfit = state.misfit + new.misfit
    holds = misfit <= MOST_MISFIT
    n, dtype = state.points.shape[0], state.points.dtype
    closed = Weighed(
        new.points,
        new.law,
        uniform_log_weights(n, dtype),
        jnp.zeros_like(state.variance),
        misfit,
        None if state.carried is None else carried_law(new.law, new.points),
        new.log_predictive,
        jnp.asarray(n, dtype),
        jnp.zeros((), dtype),
        jnp.asarray(int(Move.CONJUGATE), jnp.int32),
        jnp.ones((), bool),
    )
    # left for good: what is carried on is the law as the last row found it
    left = eqx.tree_at(lambda w: w.misfit, weighed, jnp.full_like(misfit, jnp.inf))
    return jax.tree.map(lambda a, b: jnp.where(holds, a, b), closed, left)


def absorb(state: StaticState, row: Any, weighed: Weighed) -> tuple[StaticState, StaticInfo]:
    after = StaticState(
        weighed.points,
        weighed.log_weights,
        weighed.law,
        state.past.append(row),
        state.surrogate,
        state.rejuvenations,
        state.tuning,
        weighed.variance,
        state.steps + 1,
        weighed.misfit,
        state.log_evidence + weighed.log_predictive,
        weighed.carried,
    )
    nan = jnp.full((), jnp.nan, state.points.dtype)
    zero = jnp.zeros((), jnp.int32)
    told = (weighed.ess, weighed.pareto_k, weighed.log_predictive, weighed.move)
    return after, info_of(after, *told, nan, zero, zero, nan, weighed.variance, nan)
