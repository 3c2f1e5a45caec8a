"""A row against the kept past, whatever it takes: an affine map if all but exact, else tempering with moves."""

from typing import Any

import equinox as eqx
import jax
from jax import Array
from jax import numpy as jnp

from pfbr.inference.adaptive.static.affine import affine_map, law_of
from pfbr.inference.adaptive.static.diagnostics import info_of, stein_error
from pfbr.inference.adaptive.static.kernel_density import evaluate_density, fit_kernels
from pfbr.inference.adaptive.static.state import Move, StaticInfo, StaticSettings, StaticState
from pfbr.inference.adaptive.static.target import Evaluation, Target, evaluate
from pfbr.inference.adaptive.static.tempering import Tempering, temper
from pfbr.inference.adaptive.static.weighing import judge
from pfbr.inference.adaptive.static.weights import clean, normalise
from pfbr.particles.pareto import pareto_k
from pfbr.particles.particles import ess
from pfbr.particles.whitening import Whitening, weighted_mean

UNCHECKED = 0.1  # posterior variances: what a density estimate of a bent cloud may cost, enough for a flag


class BestMap(eqx.Module):
    """The carry: the cloud that has kept most of the ESS so far."""

    points: Array
    evaluation: Evaluation
    law: Whitening  # that the points are from
    log_weights: Array  # unnormalised
    ess: Array
    tried: Array  # int32


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
    here = at(state.points)

    # Affine: from the last fair cloud by all rows since, weighed exactly
    def improve(best: BestMap) -> BestMap:
        mapped = affine_map(at, best.points, best.evaluation, best.law, best.log_weights, one)
        log_weights = clean(mapped.log_weights)
        left = ess(log_weights)
        better = left > best.ess
        new = BestMap(mapped.points, mapped.evaluation, mapped.law, log_weights, left, best.tried + 1)
        old = eqx.tree_at(lambda b: b.tried, best, jnp.full_like(best.tried, settings.affine_tries))
        return jax.tree.map(lambda a, b: jnp.where(better, a, b), new, old)

    weights_here = clean(state.log_weights + here.new)
    unmoved = BestMap(state.points, here, state.law, weights_here, weighed.ess, jnp.zeros((), jnp.int32))
    best = jax.lax.while_loop(lambda b: (b.tried < settings.affine_tries) & (b.ess < 0.97 * n), improve, unmoved)
    points, evaluation, left = best.points, best.evaluation, best.ess
    near = left >= settings.affine_ess * n

    # Tempered: from the better of the two clouds; where the map is all but exact nothing is left to do
    mapped_enough = left >= settings.temper_ess * n
    log_weights, gained = normalise(best.log_weights)
    choose = lambda a, b: jax.tree.map(lambda u, v: jnp.where(mapped_enough, u, v), a, b)
    zero = jnp.zeros((), jnp.int32)
    begin = Tempering(
        key,
        jnp.where(mapped_enough, one, 0),
        choose(points, state.points),
        choose(evaluation, here),
        choose(log_weights, state.log_weights),
        jnp.where(mapped_enough, gained, 0),
        state.tuning,
        near,
        zero,
        zero,
        jnp.full((), jnp.nan, dtype),
        state.variance,
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
