"""One row for static unknowns: weigh while the ESS is enough; else an affine map if all but exact; else temper."""

from enum import IntEnum
from typing import Any

import equinox as eqx
import jax
from jax import Array
from jax import numpy as jnp

from pfbr.inference.adaptive.static.affine import affine_map, law_of
from pfbr.inference.adaptive.static.conjugate import MOST_MISFIT, conjugate_update, prior_as_law
from pfbr.inference.adaptive.static.forgetting import forget_oldest
from pfbr.inference.adaptive.static.kernel_density import evaluate_density, fit_kernels
from pfbr.inference.adaptive.static.kernels import Tuning, initial_tuning
from pfbr.inference.adaptive.static.past import Past, empty_past
from pfbr.inference.adaptive.static.surrogate import Surrogate, no_surrogate
from pfbr.inference.adaptive.static.target import Evaluation, Target, evaluate, row_values
from pfbr.inference.adaptive.static.tempering import Tempering, temper
from pfbr.inference.adaptive.static.weights import clean, normalise, uniform_log_weights
from pfbr.inference.adaptive.static.whitening import Whitening, fit_whitening, rounding, weighted_mean
from pfbr.particles.pareto import pareto_k
from pfbr.particles.particles import ess

MOST_BENT = 0.25  # nats²: variance over the cloud of what the quadratic for dropped rows leaves unexplained
UNCHECKED = 0.1  # posterior variances: what a density estimate of a bent cloud may cost, enough for a flag
COARSE = 0.1  # standard deviations between neighbouring floats: beyond, particles are on a lattice that shows


class StaticSettings(eqx.Module):
    """Settings, each with its reason."""

    weigh_ess: float = eqx.field(static=True, default=0.45)  # below, weights cost more than half the particles
    affine_ess: float = eqx.field(static=True, default=0.85)  # a map is taken only where it is all but exact
    affine_tries: int = eqx.field(static=True, default=1)  # a second one takes the place of tempering, and loses
    temper_ess: float = eqx.field(static=True, default=0.4)
    early_ess: float = eqx.field(static=True, default=0.7)  # for the first rows: shorter steps lose less of the tails
    memory: float = eqx.field(static=True, default=0.3)  # 0.3² of the resampling noise is left: 5 % of the error
    memory_between: float = eqx.field(static=True, default=0.5)  # on the way the next stage moves again
    least_moves: int = eqx.field(static=True, default=2)
    early_moves: int = eqx.field(static=True, default=60)  # more of them for the first rows, where they are cheap
    most_moves: int = eqx.field(static=True, default=200)
    most_moves_between: int = eqx.field(static=True, default=30)
    max_stages: int = eqx.field(static=True, default=300)  # vague priors need tens; bounded, so that a row ends


class Move(IntEnum):
    WEIGHED = 0
    AFFINE = 1
    TEMPERED = 2
    CONJUGATE = 3


class StaticState(eqx.Module):
    points: Array  # (n, d)
    log_weights: Array  # (n,) normalised
    law: Whitening  # of the target at the last rejuvenation, as its scores described it
    past: Past
    surrogate: Surrogate
    rejuvenations: Array  # int32
    tuning: Tuning
    variance: Array  # of the mean, in posterior variances, as of the last rejuvenation
    steps: Array  # int32 rows seen
    misfit: Array  # of the closed form so far; infinite once it has been left


class StaticInfo(eqx.Module):
    ess: Array
    pareto_k: Array
    log_predictive: Array
    flagged: Array
    exact: Array
    move: Array
    rejuvenations: Array
    acceptance: Array
    stages: Array
    moves: Array
    error: Array  # what the error of the mean is thought to be (Mahalanobis over √d)
    stein: Array  # the same from the scores alone; NaN where they were not needed


class Weighed(eqx.Module):
    """What weighing says, before it is decided whether that is enough."""

    log_weights: Array  # normalised, with the row
    log_predictive: Array
    ess: Array
    pareto_k: Array
    enough: Array  # bool


class BestMap(eqx.Module):
    """The carry: the cloud that has kept most of the ESS so far."""

    points: Array
    evaluation: Evaluation
    law: Whitening  # that the points are from
    log_weights: Array  # unnormalised
    ess: Array
    tried: Array  # int32


def init(key: Array, points: Array, row: Any, *, history: int = 4096) -> StaticState:
    """Equally weighted draws from the prior, and room for `history` rows like the example."""
    n, d = points.shape
    equal = uniform_log_weights(n, points.dtype)
    return StaticState(
        points,
        equal,
        fit_whitening(points, jnp.exp(equal)),
        empty_past(row, history),
        no_surrogate(d, points.dtype),
        jnp.zeros((), jnp.int32),
        initial_tuning(d, points.dtype),
        jnp.asarray(1 / n, points.dtype),
        jnp.zeros((), jnp.int32),
        jnp.full((), jnp.inf, points.dtype),
    )


def begin(target: Target, state: StaticState) -> StaticState:
    """Before the first row: a Gaussian prior is known exactly. Without this call the closed form is not tried."""
    prior = prior_as_law(target, state.points)
    return eqx.tree_at(lambda s: (s.points, s.law, s.misfit), state, (prior.points, prior.law, prior.misfit))


def judge(target: Target, state: StaticState, row: Any, settings: StaticSettings) -> Weighed:
    n = state.points.shape[0]
    weighed = clean(state.log_weights + row_values(target, state.points, row))
    log_weights, total = normalise(weighed)
    left = ess(weighed)
    return Weighed(log_weights, total, left, pareto_k(weighed), left >= settings.weigh_ess * n)


def weigh(target: Target, state: StaticState, row: Any, settings: StaticSettings = StaticSettings()):
    """The state and info after weighing alone, and whether that was enough. Compiles in a moment."""
    weighed = judge(target, state, row, settings)
    after, info = absorb(state, row, weighed)
    return try_conjugate(target, state, row, after, info, weighed.enough)


def try_conjugate(target: Target, state: StaticState, row: Any, after: StaticState, info: StaticInfo, enough: Array):
    """The closed form where it has held so far and holds for this row; else what weighing said."""

    def closed_form():
        new = conjugate_update(target, state.points, state.law, row)
        misfit = state.misfit + new.misfit
        holds = misfit <= MOST_MISFIT
        n = state.points.shape[0]
        leaves = lambda s: (s.points, s.law, s.log_weights, s.rejuvenations, s.variance, s.misfit)
        equal = uniform_log_weights(n, state.points.dtype)
        moved = (new.points, new.law, equal, state.rejuvenations, jnp.zeros_like(state.variance), misfit)
        closed = eqx.tree_at(leaves, after, moved)
        nan, zero = jnp.full((), jnp.nan, state.points.dtype), jnp.zeros((), jnp.int32)
        size, none = jnp.asarray(n, state.points.dtype), jnp.zeros((), state.points.dtype)
        closed_info = info_of(closed, size, none, new.log_predictive, Move.CONJUGATE, nan, zero, zero, nan, none)
        # left for good: what is carried on is the law as the last row found it
        left = eqx.tree_at(lambda s: (s.misfit, s.variance), after, (jnp.full_like(misfit, jnp.inf), state.variance))
        choose = lambda a, b: jax.tree.map(lambda u, v: jnp.where(holds, u, v), a, b)
        return (*choose((closed, closed_info), (left, info)), holds | enough)

    return jax.lax.cond(state.misfit <= MOST_MISFIT, closed_form, lambda: (after, info, enough))


def absorb(state: StaticState, row: Any, weighed: Weighed) -> tuple[StaticState, StaticInfo]:
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
    )
    nan = jnp.full((), jnp.nan, state.points.dtype)
    zero = jnp.zeros((), jnp.int32)
    log_variance = state.variance
    return after, info_of(
        after, weighed.ess, weighed.pareto_k, weighed.log_predictive, Move.WEIGHED, nan, zero, zero, nan, log_variance
    )


def make_room(target: Target, state: StaticState) -> StaticState:
    """Where the buffer is full the oldest rows go into the surrogate. Before a row, apart from weighing: it is rare."""
    if not state.past.capacity:
        return state
    forget = lambda: forget_oldest(target, state.past, state.surrogate, state.points, state.log_weights)
    full = state.past.count >= state.past.capacity
    past, surrogate = jax.lax.cond(full, forget, lambda: (state.past, state.surrogate))
    return eqx.tree_at(lambda s: (s.past, s.surrogate), state, (past, surrogate))


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
        shrunk = jnp.exp(2 * jnp.mean(jnp.log(law.scale / state.law.scale)))
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


def stein_error(points: Array, scores: Array, log_weights: Array) -> Array:
    """Mean of the scores in units of their own spread, over √d: 0 at the target, 1/√n for n draws from it.

    For a Gaussian it is the error of the mean. The scores' covariance is the target's information, so that this is
    bounded where scores have heavy tails, as in a funnel, where a Newton step is not.
    """
    d = points.shape[1]
    weights = jax.nn.softmax(log_weights)
    scores = fit_whitening(points, weights).scores(scores)
    mean = weights @ scores
    spread = (weights[:, None] * scores).T @ scores
    length = jnp.sqrt(jnp.maximum(jnp.diag(spread), jnp.finfo(points.dtype).tiny))
    ridge = 1e-4 * jnp.eye(d, dtype=points.dtype)
    factor = jnp.linalg.cholesky(spread / length[:, None] / length + ridge)
    share = jnp.sum(jax.scipy.linalg.solve_triangular(factor, mean / length, lower=True) ** 2)
    share = jnp.minimum(share, 1 - 1e-6)  # of E[s]ᵀ E[ssᵀ]⁻¹ E[s] ≤ 1
    return jnp.sqrt(share / (1 - share) / d)


def info_of(state, left, k, log_predictive, move, acceptance, stages, moves, stein, log_variance) -> StaticInfo:
    n = state.points.shape[0]
    error = jnp.sqrt(state.variance + jnp.maximum(1 / jnp.maximum(left, 1) - 1 / n, 0))
    # the law's scale is that of the last rejuvenation: near enough for this
    coarse = rounding(state.law) > COARSE
    bent = state.surrogate.misfit > MOST_BENT
    flagged = coarse | bent | ~(error < 0.3) | (stein > 0.3) | ~(log_variance < 0.5) | ~jnp.isfinite(log_predictive)
    exact = (state.surrogate.rows == 0) if state.past.capacity else state.rejuvenations == 0
    return StaticInfo(
        left,
        k,
        log_predictive,
        flagged,
        exact,
        jnp.asarray(move, jnp.int32),
        state.rejuvenations,
        acceptance,
        stages,
        moves,
        error,
        stein,
    )


def step(
    key: Array, target: Target, state: StaticState, row: Any, settings: StaticSettings = StaticSettings()
) -> tuple[StaticState, StaticInfo]:
    """One row. Pure: jit, scan and vmap as you like (under vmap both branches run)."""
    state = make_room(target, state)
    state = jax.lax.cond(state.steps == 0, lambda: begin(target, state), lambda: state)
    after, info, enough = weigh(target, state, row, settings)
    return jax.lax.cond(enough, lambda: (after, info), lambda: rejuvenate(key, target, state, row, settings))
