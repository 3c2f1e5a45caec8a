"""A filter of weighted particles: `init`, then `step` once a report, both pure."""

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array

from pfbr.inference.adaptive.filter.cloud import Cloud, resampled
from pfbr.inference.adaptive.filter.ensemble import PER_DIMENSION
from pfbr.inference.adaptive.filter.model import log_likelihoods, was_observed
from pfbr.inference.adaptive.filter.predict import first_cloud, predict, redraw
from pfbr.inference.adaptive.filter.second_look import Past, empty_past, look_again, surprised
from pfbr.inference.adaptive.filter.update import SECOND_LOOK, Absorbed, Settings, absorb, without_noise
from pfbr.particles.pareto import pareto_k
from pfbr.particles.summation import CompensatedSum


class FilterState(eqx.Module):
    cloud: Cloud
    log_evidence: CompensatedSum
    count: Array  # reports so far
    past: Past | None  # the last few reports and the clouds before them; None where no second look is wanted


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


def init(
    key: Array, model, num_particles: int, *, observation=None, conditions=None, settings=Settings()
) -> FilterState:
    """`observation` and `conditions`: examples of what reports will look like, for what is kept of them."""
    cloud = first_cloud(key, model, num_particles)
    many = num_particles >= PER_DIMENSION * model.dim  # else there is no density of the cloud to draw more from
    keep = settings.second_look and many and observation is not None and not model.linear
    past = empty_past(cloud, observation, conditions, settings.second_look) if keep else None
    return FilterState(cloud, CompensatedSum.zero(), jnp.zeros((), jnp.int32), past)


def predict_and_absorb(
    key: Array, model, cloud: Cloud, observation, dt, conditions, settings
) -> tuple[Cloud, Absorbed]:
    """One report without diagnostics: the predicted cloud, and what became of it."""
    predict_key, absorb_key, resample_key = jax.random.split(key, 3)
    predicted = predict(predict_key, model, cloud, dt, conditions, match=settings.match)
    noisy = model.noise_dim > 0
    settings = settings if noisy else without_noise(settings)
    result = absorb(
        absorb_key,
        predicted,
        lambda points: log_likelihoods(model, points, observation, conditions),
        settings,
        linear_gaussian=model.linear,
        redraw=(lambda key: redraw(key, model, cloud, dt, conditions, settings.oversample)) if noisy else None,
    )
    n = cloud.points.shape[0]
    settled = jax.lax.cond(
        result.cloud.ess < settings.stay * n,
        lambda: resampled(resample_key, result.cloud.points, result.cloud.log_weights, result.cloud.parent),
        lambda: result.cloud,
    )
    return predicted, eqx.tree_at(lambda r: r.cloud, result, settled)


def step(key: Array, model, state: FilterState, observation, *, dt, conditions=None, settings=Settings()):
    """Predict, absorb; where the observation surprises the whole cloud, look again at the last few reports."""
    update_key, surprise_key, look_key = jax.random.split(key, 3)
    dt = jnp.asarray(dt, state.cloud.points.dtype)
    predicted, result = predict_and_absorb(update_key, model, state.cloud, observation, dt, conditions, settings)
    cloud, past, move = result.cloud, state.past, result.move
    log_evidence = state.log_evidence.add(result.log_predictive)
    surprise = jnp.array(False)
    if past is not None:
        surprise = was_observed(conditions) & surprised(
            surprise_key, model, predicted, result, past, conditions, settings.surprise
        )
        past = past.push(state.cloud, state.log_evidence, observation, dt, conditions, result.log_predictive)
        replay = lambda: look_again(look_key, model, cloud, log_evidence, past, settings)
        keep = lambda: (cloud, log_evidence, past, jnp.array(False))
        cloud, log_evidence, past, replaced = jax.lax.cond(surprise & past.rested, replay, keep)
        move = jnp.where(replaced, SECOND_LOOK, move)
    n = cloud.points.shape[0]
    info = FilterInfo(
        ess=cloud.ess,
        pareto_k=pareto_k(result.cloud.log_weights),
        log_predictive=result.log_predictive,
        log_evidence=log_evidence.value,
        flagged=surprise | (cloud.ess < 0.1 * n) | ~jnp.isfinite(result.log_predictive) | result.unfinished,
        move=move,
        rounds=result.rounds,
        acceptance=result.acceptance,
        width=result.width,
        surprised=surprise,
    )
    return FilterState(cloud, log_evidence, state.count + 1, past), info
