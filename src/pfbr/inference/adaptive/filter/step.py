"""A filter of weighted particles: `init`, then `step` once a report, both pure."""

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array

from pfbr.inference.adaptive.filter.absorbed import SECOND_LOOK, Absorbed
from pfbr.inference.adaptive.filter.cloud import Cloud, resampled
from pfbr.inference.adaptive.filter.ensemble import PER_DIMENSION
from pfbr.inference.adaptive.filter.lineage import Lineage, first_lineage
from pfbr.inference.adaptive.filter.model import FilterModel, log_likelihoods, undefined_share, was_observed
from pfbr.inference.adaptive.filter.predict import first_cloud, predict, redraw
from pfbr.inference.adaptive.filter.second_look import look_again, surprised
from pfbr.inference.adaptive.filter.settings import Settings, without_noise
from pfbr.inference.adaptive.filter.transitions import Before
from pfbr.inference.adaptive.filter.update import absorb
from pfbr.particles.pareto import pareto_k
from pfbr.particles.summation import CompensatedSum

REST = 4  # reports between two looks: a bound on the time of a stream that nothing can mend


TAIL = 1024  # weights that tell how heavy their tail is, at most
BEYOND = 0.5  # of a cloud, where no predicted particle vouches for it: more likely lost than not


class FilterState(eqx.Module):
    cloud: Cloud
    log_evidence: CompensatedSum
    count: Array  # reports so far
    lineage: Lineage | None  # where particles come from; None where weights are never used
    rested: Array  # reports since the last second look


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
    error: Array  # of the mean, in standard deviations, by the lineage of the particles; 0 where it is not known
    beyond: Array  # the share of the cloud that no predicted particle vouches for
    undefined: Array  # the share of the predicted particles at which the log likelihood is NaN


def init(
    key: Array, model: FilterModel, num_particles: int, *, observation=None, conditions=None, settings=Settings()
) -> FilterState:
    """`observation` and `conditions`: examples of what reports will look like, for what is kept of them."""
    cloud = first_cloud(key, model, num_particles)
    many = num_particles >= PER_DIMENSION * model.dim  # else there is no density of the cloud to draw more from
    keep = many and observation is not None and not model.linear
    lineage = first_lineage(cloud, observation, conditions) if keep else None
    return FilterState(cloud, CompensatedSum.zero(), jnp.zeros((), jnp.int32), lineage, jnp.full((), REST, jnp.int32))


def predict_and_absorb(
    key: Array, model: FilterModel, cloud: Cloud, observation, dt, conditions, settings: Settings, lineage=None
) -> tuple[Cloud, Absorbed]:
    """One report without diagnostics: the predicted cloud, and what became of it."""
    predict_key, absorb_key, resample_key = jax.random.split(key, 3)
    noisy = model.noise_dim > 0
    before = opened(resample_key, cloud, dt, settings) if noisy and not model.linear else fresh(cloud)
    predicted = predict(predict_key, model, before, dt, conditions, match=settings.match)
    result = absorb(
        absorb_key,
        predicted,
        lambda points: log_likelihoods(model, points, observation, conditions),
        settings if noisy else without_noise(settings),
        linear_gaussian=model.linear,
        redraw=(lambda key, times: redraw(key, model, before, dt, conditions, times)) if noisy else None,
        before=_transitions(model, before, dt, conditions) if noisy else None,
        error=None if lineage is None else lineage.error,
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


def opened(key: Array, cloud: Cloud, dt: Array, settings: Settings) -> Cloud:
    """Resampled where weights have become unequal. That opens a step instead of closing it, so that the particles one
    looks at are weighted."""
    n = cloud.points.shape[0]
    own = jnp.arange(n)
    return jax.lax.cond(
        (cloud.ess < settings.stay * n) & (dt > 0),  # without time there is no noise to part copies
        lambda: resampled(key, cloud.points, cloud.log_weights, own),
        lambda: fresh(cloud),
    )


def step(
    key: Array, model: FilterModel, state: FilterState, observation, *, dt, conditions=None, settings=Settings()
) -> tuple[FilterState, FilterInfo]:
    """Predict, absorb; where the observation surprises the whole cloud, look again at the last few reports."""
    update_key, surprise_key, look_key = jax.random.split(key, 3)
    dt = jnp.asarray(dt, state.cloud.points.dtype)
    lineage = None if state.lineage is None else state.lineage.opened(state.cloud, state.log_evidence)
    predicted, result = predict_and_absorb(
        update_key, model, state.cloud, observation, dt, conditions, settings, lineage
    )
    cloud, move, rested = result.cloud, result.move, state.rested + 1
    log_evidence = state.log_evidence.add(result.log_predictive)
    surprise = jnp.array(False)
    if lineage is not None:
        surprise = was_observed(conditions) & surprised(
            surprise_key, model, predicted, result, lineage, conditions, settings.surprise
        )
        lineage = lineage.after(cloud.parent, observation, dt, conditions, result.log_predictive)
    if lineage is not None and settings.second_look and model.noise_dim > 0:  # without noise, copies stay copies
        kept = lineage
        look = (surprise | (was_observed(conditions) & (result.beyond > BEYOND))) & (rested >= REST)
        cloud, log_evidence, replaced = jax.lax.cond(
            look,
            lambda: look_again(look_key, model, cloud, log_evidence, kept, settings),
            lambda: (cloud, log_evidence, jnp.array(False)),
        )
        lineage = lineage.restarted_where(replaced, cloud, log_evidence)
        move, rested = jnp.where(replaced, SECOND_LOOK, move), jnp.where(look, 0, rested)
    unsure = ~(result.error < settings.wrong) | (result.beyond > BEYOND) | result.unfinished
    flagged = surprise | ~jnp.isfinite(result.log_predictive) | unsure
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
        error=result.error,
        beyond=result.beyond,
        undefined=undefined_share(model, predicted.points, observation, conditions),
    )
    return FilterState(cloud, log_evidence, state.count + 1, lineage, rested), info
