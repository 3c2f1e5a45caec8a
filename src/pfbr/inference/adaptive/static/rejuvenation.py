"""A row against the kept past, whatever it takes: an affine map if all but exact, else tempering with moves."""

from typing import Any

import jax
from jax import Array
from jax import numpy as jnp

from pfbr.inference.adaptive.static.affine import affine_map, law_of
from pfbr.inference.adaptive.static.diagnostics import info_of, stein_error
from pfbr.inference.adaptive.static.fresh import MOST_UNKNOWNS, Fresh, fresh_look, no_look
from pfbr.inference.adaptive.static.kernel_density import evaluate_density, fit_kernels
from pfbr.inference.adaptive.static.state import Move, StaticInfo, StaticSettings, StaticState
from pfbr.inference.adaptive.static.target import Target, evaluate
from pfbr.inference.adaptive.static.tempering import Tempering, share_to_keep, temper
from pfbr.inference.adaptive.static.weighing import judge
from pfbr.inference.adaptive.static.weights import clean, normalise, uniform_log_weights
from pfbr.particles.pareto import pareto_k
from pfbr.particles.particles import ess
from pfbr.particles.whitening import weighted_mean

LEFT_OUT = 1e-3  # share of the target that an affine map may leave behind: an arm or a mode with fewer is not seen
UNCHECKED = 0.1  # posterior variances: what a density estimate of a bent cloud may cost, enough for a flag


def look_afresh(key: Array, target: Target, state: StaticState, row: Any, settings: StaticSettings) -> Fresh:
    """While rows are few and all of them kept, and unknowns are few; else nothing is looked at."""
    n, d = state.points.shape
    if target.sample_prior is None or d > MOST_UNKNOWNS or not state.past.capacity:
        return no_look(state.points)
    early = (state.steps < settings.early_rows) & (state.past.count == state.steps)
    look = lambda: fresh_look(key, target, state.past, row, n)
    return jax.lax.cond(early, look, lambda: no_look(state.points))


def rejuvenate(
    key: Array, target: Target, state: StaticState, row: Any, settings: StaticSettings = StaticSettings()
) -> tuple[StaticState, StaticInfo]:
    """The row against the kept past, whatever it takes."""
    n, _ = state.points.shape
    dtype = state.points.dtype
    one = jnp.ones((), dtype)
    weighed = judge(target, state, row, settings)
    reference = weighted_mean(state.points, jax.nn.softmax(state.log_weights))
    if state.past.capacity:
        at = lambda points: evaluate(target, points, reference, state.surrogate, state.past, row)
    else:  # nothing kept: the cloud's own shape stands for the past
        density = fit_kernels(state.points, state.log_weights)
        at = lambda points: evaluate_density(target, density, state.steps == 0, points, row)
    key, fresh_key = jax.random.split(key)
    fresh = look_afresh(fresh_key, target, state, row, settings)
    renewed = fresh.ess >= settings.fresh_ess * n
    start = jnp.where(renewed, fresh.points, state.points)
    here = at(start)

    # Affine: from the last fair cloud by all rows since, weighed exactly
    mapped = affine_map(at, start, here, state.law, clean(state.log_weights + here.new), one)
    weights = clean(mapped.log_weights)
    left = ess(weights)
    whole = ~renewed & (mapped.left_out < LEFT_OUT)
    near = whole & (left >= settings.affine_ess * n)

    # Tempered: from the better of the two clouds; where the map is all but exact nothing is left to do
    mapped_enough = whole & (left > weighed.ess) & (left >= share_to_keep(state.steps, settings) * n)
    log_weights, gained = normalise(weights)
    choose = lambda a, b: jax.tree.map(lambda u, v: jnp.where(mapped_enough, u, v), a, b)
    zero = jnp.zeros((), jnp.int32)
    begin = Tempering(
        key,
        jnp.where(mapped_enough | renewed, one, 0),
        choose(mapped.points, start),
        choose(mapped.evaluation, here),
        choose(log_weights, jnp.where(renewed, uniform_log_weights(n, dtype), state.log_weights)),
        jnp.where(mapped_enough, gained, jnp.where(renewed, fresh.log_ratio, 0)),
        state.tuning,
        near,
        jnp.where(renewed, settings.early_rounds - 1, zero),  # one round is enough for draws that are all but fair
        zero,
        zero,
        jnp.full((), jnp.nan, dtype),
        jnp.where(renewed, 1 / jnp.maximum(fresh.ess, 1), state.variance),
        jnp.where(mapped_enough, jnp.maximum(1 / left - 1 / n, 0) + state.variance, 0),
    )
    end = temper(at, begin, state.steps, settings)

    points, evaluation, log_weights = end.points, end.evaluation, end.log_weights
    scores = evaluation.score(one)
    law = law_of(points, scores, log_weights)
    variance = end.variance
    if not state.past.capacity:
        # a cloud's shape has the cloud's error: moves do not forget it, only what is learned since makes it small
        shrunk = jnp.exp(2 * jnp.mean(jnp.log(law.std / state.law.std)))
        inherited = (state.variance + 1 / jnp.maximum(ess(state.log_weights), 1)) * jnp.minimum(shrunk, 1)
        # kernels narrower than one Gaussian: the cloud is bent and its density a guess that no row can check
        guessed = jnp.where(density.width < 0.99, UNCHECKED, 0)
        variance = end.variance + jnp.where(state.steps == 0, 0, inherited + guessed)
    # what the scores say stays true for the rows that are weighed until the next rejuvenation
    stein = stein_error(points, scores, log_weights)
    variance = jnp.where(jnp.isfinite(stein), jnp.maximum(variance, stein**2), variance)
    moved = jnp.where(near, int(Move.AFFINE), int(Move.TEMPERED)).astype(jnp.int32)
    after = StaticState(
        points,
        log_weights,
        law,
        state.past.append(row),
        state.surrogate,
        state.rejuvenations + 1,
        end.tuning,
        variance,
        state.steps + 1,
        jnp.full_like(state.misfit, jnp.inf),
    )
    info = info_of(
        after,
        ess(log_weights),
        pareto_k(log_weights),
        end.log_ratio,
        moved,
        end.acceptance,
        end.stages,
        end.moves,
        stein,
        end.log_variance,
    )
    return after, info
