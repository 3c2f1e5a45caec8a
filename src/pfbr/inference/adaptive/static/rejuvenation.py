"""A row against the kept past, whatever it takes: an affine map if all but exact, else tempering with moves."""

from typing import Any

import equinox as eqx
import jax
from jax import Array
from jax import numpy as jnp

from pfbr.inference.adaptive.static.affine import affine_map, law_of
from pfbr.inference.adaptive.static.carried import Carried, evaluate_carried
from pfbr.inference.adaptive.static.diagnostics import MOST_CARRIED, info_of, stein_error
from pfbr.inference.adaptive.static.fresh import MOST_UNKNOWNS, Fresh, fresh_look, no_look
from pfbr.inference.adaptive.static.state import Move, StaticInfo, StaticSettings, StaticState
from pfbr.inference.adaptive.static.staying import astray, few, spent
from pfbr.inference.adaptive.static.target import Target, evaluate
from pfbr.inference.adaptive.static.tempering import Tempering, share_to_keep, temper
from pfbr.inference.adaptive.static.weighing import absorb, judge, least_ess
from pfbr.inference.adaptive.static.weights import clean, normalise, uniform_log_weights
from pfbr.particles.pareto import pareto_k
from pfbr.particles.particles import ess
from pfbr.particles.whitening import weighted_mean, whitening_of

HARD_EDGE = 1e-3  # share of proposals where the target is zero
# nats by which fresh draws find more evidence than the cloud: by chance in less than e⁻⁸ of all looks where one draw
# counts for nearly all, and hardly ever by e³ where several do
MISSED, MISSED_BY_SEVERAL = 8.0, 3.0
# standard deviations that moves may lead a cloud of which no row is kept: beyond, it counts as lost for good
ASTRAY = 0.5
LEFT_OUT = 1e-3  # share of the target that an affine map may leave behind: an arm or a mode with fewer is not seen


def looks_afresh(state: StaticState) -> bool:
    return state.carried is None and state.points.shape[1] <= MOST_UNKNOWNS


def look_afresh(key: Array, target: Target, state: StaticState, row: Any, settings: StaticSettings) -> Fresh:
    """While rows are few and all of them kept, and unknowns are few; else nothing is looked at."""
    n = state.points.shape[0]
    if target.sample_prior is None or not looks_afresh(state):
        return no_look(state.points)
    early = (state.steps < settings.early_rows) & (state.past.count == state.steps)
    look = lambda: fresh_look(key, target, state.past, row, n)
    return jax.lax.cond(early, look, lambda: no_look(state.points))


def from_fresh(at, end: Tempering, fresh: Fresh, before: Array) -> Tempering:
    """Begin again with the fresh draws, which stand for all rows, however few of them count."""
    n, dtype = end.points.shape[0], end.points.dtype
    uncertain = 1 / jnp.maximum(fresh.ess, 1)
    new = Tempering(
        end.key,
        jnp.ones_like(end.t),
        fresh.points,
        at(fresh.points),
        uniform_log_weights(n, dtype),
        fresh.log_evidence - before,
        end.tuning,
        jnp.zeros((), bool),
        jnp.zeros_like(end.rounds),
        end.stages,
        end.moves,
        end.acceptance,
        uncertain,
        uncertain,
        jnp.mean(fresh.points, axis=0),
        end.outside,
    )
    return new


def temper_and_compare(at, begin: Tempering, fresh: Fresh, state: StaticState, settings: StaticSettings) -> Tempering:
    """Temper; and where fresh draws then say that the cloud has missed nearly all there is, begin again with them."""
    if not looks_afresh(state):
        return temper(at, begin, state.steps, settings)

    class Attempt(eqx.Module):
        tempering: Tempering
        again: Array  # bool
        number: Array  # int32

    def attempt(c: Attempt) -> Attempt:
        end = temper(at, c.tempering, state.steps, settings)
        more = fresh.log_evidence - state.log_evidence - end.log_ratio
        missed = more > jnp.where(fresh.ess >= 2, MISSED_BY_SEVERAL, MISSED)
        again = missed & (c.number == 0)
        renewed = jax.lax.cond(again, lambda: from_fresh(at, end, fresh, state.log_evidence), lambda: end)
        return Attempt(renewed, again, c.number + 1)

    first = Attempt(begin, jnp.ones((), bool), jnp.zeros((), jnp.int32))
    return jax.lax.while_loop(lambda c: c.again, attempt, first).tempering


def rejuvenate(
    key: Array, target: Target, state: StaticState, row: Any, settings: StaticSettings = StaticSettings()
) -> tuple[StaticState, StaticInfo]:
    """The row against the kept past, whatever it takes."""
    n, d = state.points.shape
    dtype = state.points.dtype
    one = jnp.ones((), dtype)
    weighed = judge(target, state, row, settings)
    reference = weighted_mean(state.points, jax.nn.softmax(state.log_weights))
    if state.carried is None:
        at = lambda points: evaluate(target, points, reference, state.surrogate, state.past, row)
    else:  # nothing kept: what is known at the particles, continued
        continuation = state.carried.continuation(target, state.points, state.log_weights)
        at = lambda points: evaluate_carried(target, continuation, state.steps == 0, points, row)
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
        state.law.mean,
        jnp.zeros((), dtype),
    )
    begin = eqx.tree_at(lambda b: b.arrived, begin, weighted_mean(begin.points, jax.nn.softmax(begin.log_weights)))
    end = temper_and_compare(at, begin, fresh, state, settings)

    points, evaluation, log_weights = end.points, end.evaluation, end.log_weights
    scores = evaluation.score(one)
    law = law_of(points, scores, log_weights)
    variance = end.variance
    # moves that lead the whole cloud elsewhere: it was not where it should have been on the way, nor is the evidence
    frame = whitening_of(points, jax.nn.softmax(log_weights))
    drift = jnp.sqrt(jnp.mean((frame.whiten(end.arrived[None]) - frame.whiten(frame.mean[None])) ** 2))
    carried = None
    if state.carried is not None:
        # a fault of the continuation stays; what is learned since makes it small, unless the cloud may be lost
        shrunk = jnp.minimum(jnp.exp(2 * jnp.mean(jnp.log(law.std / state.law.std))), 1)
        shrunk = jnp.where(state.carried.misfit > MOST_CARRIED * d, 1, shrunk)
        pile_up = lambda before, now: jnp.where(state.steps == 0, 0, (before + now) * shrunk)
        lasting = pile_up(state.carried.variance, continuation.variance())
        misfit = pile_up(state.carried.misfit, continuation.misfit())
        # a cloud that has stayed before, and of which next to nothing is left, cannot tell where moves lead
        unsure = (ess(state.log_weights) < least_ess(state, settings)) & (weighed.ess < few(d))
        misfit = jnp.where((state.steps > 0) & (unsure | (drift > ASTRAY)), jnp.inf, misfit)
        carried = Carried(evaluation.value(one), evaluation.past_score + evaluation.new_score, lasting, misfit)
        variance = variance + lasting
    # what the scores say stays true for the rows that are weighed until the next rejuvenation; at a hard edge they say
    # nothing, since the density does not vanish there
    stein = jnp.where(end.outside > HARD_EDGE, jnp.nan, stein_error(points, scores, log_weights))
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
        state.log_evidence + end.log_ratio,
        carried,
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
        drift,
    )
    if state.carried is None:
        return after, info
    # before the first row the past is the prior, which is known
    elsewhere = astray(state.points, weighed.log_weights, points, log_weights)
    stay = (state.steps > 0) & (elsewhere | (unsure & (weighed.ess >= spent(d))))
    stayed, said = absorb(state, row, weighed)
    stayed = eqx.tree_at(lambda s: s.misfit, stayed, after.misfit)  # the closed form is left for good
    return jax.tree.map(lambda a, b: jnp.where(stay, a, b), (stayed, said), (after, info))
