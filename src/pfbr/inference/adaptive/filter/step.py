"""A filter of weighted particles: `init`, then `step` once a report, both pure."""

from collections.abc import Callable

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array

from pfbr.inference.adaptive.filter import window
from pfbr.inference.adaptive.filter.absorbed import SECOND_LOOK, Absorbed
from pfbr.inference.adaptive.filter.cloud import Cloud, resampled
from pfbr.inference.adaptive.filter.ensemble import PER_DIMENSION
from pfbr.inference.adaptive.filter.exact import is_affine
from pfbr.inference.adaptive.filter.lineage import Lineage, first_lineage
from pfbr.inference.adaptive.filter.model import FilterModel, log_likelihoods, undefined_share, was_observed
from pfbr.inference.adaptive.filter.path_moves import move_paths
from pfbr.inference.adaptive.filter.paths import Paths, first_paths
from pfbr.inference.adaptive.filter.predict import draw_noise, first_cloud, moved
from pfbr.inference.adaptive.filter.second_look import is_doubtful, look_again, surprised
from pfbr.inference.adaptive.filter.settings import Settings
from pfbr.inference.adaptive.filter.transitions import Before
from pfbr.inference.adaptive.filter.update import Ways, absorb, is_enough
from pfbr.inference.adaptive.filter.window import Window, move_in_window
from pfbr.particles.pareto import pareto_k
from pfbr.particles.summation import CompensatedSum

REST = 4  # reports between two looks: a bound on the time of a stream that nothing can mend


TAIL = 1024  # weights that tell how heavy their tail is, at most
WRONGEST = 2.0  # standard deviations that an error is said to be, at most
FAR = 5  # rounds of tempering: where so little of a cloud counts, what was lost earlier may count more
BEYOND = 0.5  # of a cloud, where no predicted particle vouches for it: more likely lost than not


class FilterState(eqx.Module):
    cloud: Cloud
    log_evidence: CompensatedSum
    count: Array  # reports so far
    lineage: Lineage | None  # where particles come from; None where weights are never used
    rested: Array  # reports since the last second look
    # from the prior to the particles, while the stream is young; without noise, over the last reports
    paths: Paths | Window | None


class FilterInfo(eqx.Module):
    ess: Array
    pareto_k: Array
    log_predictive: Array  # of this report
    log_evidence: Array  # of the stream so far
    flagged: Array
    move: Array  # 0 weighed, 1 flowed, 2 tempered, 3 second look, 4 oversampled
    rounds: Array
    acceptance: Array
    width: Array
    surprised: Array
    error: Array  # of the mean, in standard deviations, at most 2: by the lineage of the particles; 0: not known
    beyond: Array  # the share of the cloud that no predicted particle vouches for
    learned: Array  # bool: moved by the learned map
    undefined: Array  # the share of the predicted particles at which the log likelihood is NaN


def init(
    key: Array, model: FilterModel, num_particles: int, *, observation=None, conditions=None, settings=Settings()
) -> FilterState:
    """`observation` and `conditions`: examples of what reports will look like, for what is kept of them."""
    cloud = first_cloud(key, model, num_particles)
    noisy = model.noise_dim > 0
    # with fewer there is no density of a cloud that is worth the name
    many = num_particles >= (PER_DIMENSION if noisy else window.PER_DIMENSION) * model.dim
    keep = many and observation is not None and not model.linear
    lineage = first_lineage(cloud, observation, conditions) if keep else None
    paths: Paths | Window | None = None
    if lineage is not None and not noisy:
        paths = window.first_window(cloud, observation, conditions)
    elif lineage is not None and num_particles <= settings.tempered and settings.move_paths:
        paths = first_paths(cloud.points, draw_noise(key, model, cloud), observation, conditions)
    zero, rested = jnp.zeros((), jnp.int32), jnp.full((), REST, jnp.int32)
    return FilterState(cloud, CompensatedSum.zero(), zero, lineage, rested, paths)


def predict_and_absorb(
    key: Array,
    model: FilterModel,
    state: FilterState,
    observation,
    dt,
    conditions,
    settings: Settings,
    lineage=None,
    weigh_only: bool = False,
) -> tuple[Cloud, Absorbed]:
    """One report without diagnostics: the predicted cloud, and what became of it."""
    predict_key, absorb_key, resample_key = jax.random.split(key, 3)
    noisy, cloud, paths = model.noise_dim > 0, state.cloud, state.paths
    match = ~paths.go_on if isinstance(paths, Paths) else True
    before = opened(resample_key, cloud, dt, settings, match) if noisy and not model.linear else fresh(cloud)
    noise = draw_noise(predict_key, model, before, match=settings.match)
    predicted = before.at(moved(model, before.points, noise, dt, conditions))

    def redraw(key, times):
        many = before.at(jnp.repeat(before.points, times, axis=0))
        noise = draw_noise(key, model, many, match=False)
        return moved(model, many.points, noise, dt, conditions), noise

    move: Callable = move_paths
    may_be_exact: Array | bool = True
    if isinstance(paths, Window):
        move = move_in_window
        may_be_exact = is_affine(before.points, predicted.points, before.weights)
        paths = paths.opened(before, observation, dt, conditions)
    elif paths is not None:
        paths = paths.opened(before.parent, noise, observation, dt, conditions)
    ways = Ways(
        redraw if noisy else None,
        _transitions(model, before, dt, conditions) if noisy else None,
        settings.map,
        paths,
        lambda key, cloud, paths: move(key, model, cloud, paths, settings),
    )
    result = absorb(
        absorb_key,
        predicted,
        lambda points: log_likelihoods(model, points, observation, conditions),
        settings,
        ways,
        linear_gaussian=model.linear,
        may_be_exact=may_be_exact,
        error=None if lineage is None else lambda result: lineage.error(result.cloud, result.renewed),
        weigh_only=weigh_only,
    )
    return predicted, result


def _transitions(model: FilterModel, cloud: Cloud, dt, conditions) -> Before | None:
    if not model.offers("log_transition"):
        return None

    def all_pairs(to, start):
        return jax.vmap(lambda x: jax.vmap(lambda y: model.log_transition(x, y, dt, conditions))(start))(to)

    return Before(cloud.points, all_pairs)


def fresh(cloud: Cloud) -> Cloud:
    """Before a report every particle is its own parent."""
    return Cloud(cloud.points, cloud.log_weights, cloud.family, jnp.arange(cloud.points.shape[0]))


def opened(key: Array, cloud: Cloud, dt: Array, settings: Settings, match: Array | bool) -> Cloud:
    """Resampled where weights have become unequal. That opens a step instead of closing it, so that the particles one
    looks at are weighted."""
    n = cloud.points.shape[0]
    own = jnp.arange(n)
    return jax.lax.cond(
        (cloud.ess < settings.stay * n) & (dt > 0),  # without time there is no noise to part copies
        lambda: resampled(key, cloud.points, cloud.log_weights, own, match=match),
        lambda: fresh(cloud),
    )


def step(
    key: Array, model: FilterModel, state: FilterState, observation, *, dt, conditions=None, settings=Settings()
) -> tuple[FilterState, FilterInfo]:
    """Predict, absorb; where the observation surprises the whole cloud, look again at the last few reports."""
    return _step(key, model, state, observation, dt, conditions, settings, weigh_only=False)[:2]


def weigh(
    key: Array, model: FilterModel, state: FilterState, observation, *, dt, conditions=None, settings=Settings()
) -> tuple[FilterState, FilterInfo, Array]:
    """The same by weighing or an exact flow alone, and whether that is what `step` would give. Compiles in a moment."""
    return _step(key, model, state, observation, dt, conditions, settings, weigh_only=True)


def _step(
    key: Array,
    model: FilterModel,
    state: FilterState,
    observation,
    dt,
    conditions,
    settings: Settings,
    weigh_only: bool,
) -> tuple[FilterState, FilterInfo, Array]:
    update_key, surprise_key, look_key = jax.random.split(key, 3)
    dt = jnp.asarray(dt, state.cloud.points.dtype)
    lineage = None if state.lineage is None else state.lineage.opened(state.cloud, state.log_evidence)
    predicted, result = predict_and_absorb(
        update_key, model, state, observation, dt, conditions, settings, lineage, weigh_only
    )
    # an ensemble and a declared linear model have one way only, and no lineage
    enough = jnp.array(True) if lineage is None else is_enough(result, settings) & ~is_doubtful(result, lineage)
    cloud, move, rested = result.cloud, result.move, state.rested + 1
    log_evidence = state.log_evidence.add(result.log_predictive)
    surprise = jnp.array(False)
    if lineage is not None:
        if not weigh_only or not model.offers("sample_observation"):  # else not asked: there is no doubt, or too little
            surprise = was_observed(conditions) & surprised(
                surprise_key, model, predicted, result, lineage, conditions, settings.surprise
            )
            enough = enough & ~surprise
        lineage = lineage.after(cloud.parent, observation, dt, conditions, result.log_predictive, result.renewed)
    paths = result.paths
    if lineage is not None and settings.second_look and model.noise_dim > 0 and not weigh_only:
        # without noise there is no second look: particles have gone back to where they were already
        kept = lineage
        far = (result.beyond > BEYOND) | (result.rounds >= FAR)
        look = (surprise | (was_observed(conditions) & far)) & (rested >= REST)
        cloud, log_evidence, replaced = jax.lax.cond(
            look,
            lambda: look_again(look_key, model, cloud, log_evidence, kept, settings),
            lambda: (cloud, log_evidence, jnp.array(False)),
        )
        lineage = lineage.restarted_where(replaced, cloud, log_evidence)
        paths = None if paths is None else paths.broken_where(replaced)
        move, rested = jnp.where(replaced, SECOND_LOOK, move), jnp.where(look, 0, rested)
    lost = ~jnp.isfinite(result.log_predictive) | (result.beyond > BEYOND) | result.unfinished
    # NaN: all particles are at one place
    error = jnp.where(lost | ~(result.error < WRONGEST), WRONGEST, result.error)
    flagged = surprise | ~(error < settings.wrong)  # a surprise may be an outlier, which later reports need not mend
    n = cloud.points.shape[0]
    info = FilterInfo(
        ess=cloud.ess,
        pareto_k=pareto_k(result.cloud.log_weights[:: max(1, n // TAIL)]),
        log_predictive=result.log_predictive,
        log_evidence=log_evidence.value,
        flagged=flagged,
        move=move,
        rounds=result.rounds,
        acceptance=result.acceptance,
        width=result.width,
        surprised=surprise,
        error=error,
        beyond=result.beyond,
        learned=result.learned,
        undefined=undefined_share(model, predicted.points, observation, conditions),
    )
    return FilterState(cloud, log_evidence, state.count + 1, lineage, rested, paths), info, enough
