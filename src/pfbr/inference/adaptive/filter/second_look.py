"""A second look: when an observation surprises the whole cloud, something was lost earlier.

The clouds before the last few reports are kept with the reports. On a surprise the oldest of them (the prior itself, if
the stream is that young) is made into many more particles and the reports are replayed. What comes out replaces the
cloud if its evidence for these reports is higher; otherwise the observation is an outlier, and the cloud stays.
"""

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array

from pfbr.inference.adaptive.filter.cloud import Cloud, equally_weighted, resampled
from pfbr.inference.adaptive.filter.density import cloud_density
from pfbr.inference.adaptive.filter.model import log_likelihoods
from pfbr.inference.adaptive.filter.predict import first_cloud, predict
from pfbr.inference.adaptive.filter.update import TEMPERED
from pfbr.particles.particles import ess
from pfbr.particles.resampling import systematic
from pfbr.particles.summation import CompensatedSum

DRAWS = 64  # observations that the cloud makes up, to know how it would score them
REST = 4  # reports between two looks: a bound on the time of a stream that nothing can mend
GAIN = 2.0  # nats of evidence that a replay must gain


class Past(eqx.Module):
    """The last reports, oldest first; `count` of them are there."""

    clouds: Cloud  # before each report
    log_evidences: CompensatedSum
    observations: object
    dts: Array
    conditions: object
    log_predictives: Array
    count: Array
    since: Array  # reports since the last look
    complete: Array  # the oldest cloud is the prior

    @property
    def rested(self) -> Array:
        return self.since >= REST

    def push(self, cloud, log_evidence, observation, dt, conditions, log_predictive) -> "Past":
        def add(kept, new):
            return jnp.concatenate([kept[1:], jnp.asarray(new, kept.dtype)[None]])

        kept = self.clouds, self.log_evidences, self.observations, self.dts, self.conditions, self.log_predictives
        new = cloud, log_evidence, observation, dt, conditions, log_predictive
        length = self.dts.shape[0]
        return Past(
            *jax.tree.map(add, kept, new),
            count=jnp.minimum(self.count + 1, length),
            since=self.since + 1,
            complete=self.complete & (self.count < length),
        )


def empty_past(cloud: Cloud, observation, conditions, length: int) -> Past:
    def room(example):
        example = jnp.asarray(example)
        return jnp.zeros((length, *example.shape), example.dtype)

    zero = jnp.zeros((), cloud.points.dtype)
    kept = jax.tree.map(room, (cloud, CompensatedSum.zero(), observation, zero, conditions, zero))
    return Past(*kept, count=jnp.zeros((), jnp.int32), since=jnp.full((), REST), complete=jnp.array(True))


def surprised(key: Array, model, predicted: Cloud, result, past: Past, conditions, nats: float) -> Array:
    """Is the log predictive density far below those of observations that the predicted cloud itself would make?

    Asked only where weighing was not enough. Models that cannot make observations are asked for their last log
    predictives instead.
    """
    if not model.offers("sample_observation"):
        there = jnp.arange(past.dts.shape[0]) >= past.dts.shape[0] - past.count
        least = jnp.min(jnp.where(there, past.log_predictives, jnp.inf))
        return (result.log_predictive < least - nats) & (past.count > 4)

    def ask():
        choose_key, draw_key = jax.random.split(key)
        chosen = predicted.points[systematic(choose_key, predicted.log_weights, DRAWS)]
        made_up = jax.vmap(lambda k, x: model.sample_observation(k, x, conditions))(
            jax.random.split(draw_key, DRAWS), chosen
        )
        score = lambda y: jax.nn.logsumexp(
            predicted.log_weights + log_likelihoods(model, predicted.points, y, conditions)
        )
        return result.log_predictive < jnp.min(jax.vmap(score)(made_up)) - nats

    return jax.lax.cond(result.move == TEMPERED, ask, lambda: jnp.array(False))


def look_again(key: Array, model, cloud: Cloud, log_evidence: CompensatedSum, past: Past, settings):
    """The replayed cloud, its evidence, the past as replayed, and whether it replaced the old ones."""
    start_key, replay_key = jax.random.split(key)
    n, many, length = cloud.points.shape[0], settings.second_look_particles, past.dts.shape[0]
    oldest = length - past.count
    at = lambda tree, i: jax.tree.map(lambda a: a[i], tree)

    def from_prior():
        return first_cloud(start_key, model, many)

    def from_kept():
        return spread_out(start_key, at(past.clouds, oldest), many, settings)

    start = jax.lax.cond(past.complete, from_prior, from_kept)

    def replay(carry, i):
        cloud, evidence = carry
        key, thin_key = jax.random.split(jax.random.fold_in(replay_key, i))
        small = resampled(thin_key, cloud.points, cloud.log_weights, cloud.parent, n)

        def go():
            after, gained = _weighed(key, model, cloud, at(past.observations, i), past.dts[i], at(past.conditions, i))
            return (after, evidence.add(gained)), gained

        def skip():
            return (cloud, evidence), jnp.zeros_like(evidence.value)

        carry, log_predictive = jax.lax.cond(i >= oldest, go, skip)
        return carry, (small, evidence, log_predictive)

    evidence = at(past.log_evidences, oldest)
    (found, evidence), (clouds, evidences, log_predictives) = jax.lax.scan(
        replay, (start, evidence), jnp.arange(length)
    )
    better = evidence.value > log_evidence.value + GAIN
    found = resampled(key, found.points, found.log_weights, found.parent, n)
    new_past = eqx.tree_at(
        lambda p: (p.clouds, p.log_evidences, p.log_predictives), past, (clouds, evidences, log_predictives)
    )
    pick = lambda new, old: jax.tree.map(lambda a, b: jnp.where(better, a, b), new, old)
    new_past = eqx.tree_at(lambda p: p.since, pick(new_past, past), jnp.zeros_like(past.since))
    return pick(found, cloud), pick(evidence, log_evidence), new_past, better


def _weighed(key: Array, model, cloud: Cloud, observation, dt, conditions) -> tuple[Cloud, Array]:
    """A step of the plain bootstrap filter: with so many particles weighing is enough, and it compiles in a moment."""
    predict_key, resample_key = jax.random.split(key)
    predicted = predict(predict_key, model, cloud, dt, conditions, match=False)
    weighed = predicted.log_weights + log_likelihoods(model, predicted.points, observation, conditions)
    gained = jax.nn.logsumexp(weighed)
    few = ess(weighed) < 0.5 * weighed.shape[0]
    after = jax.lax.cond(
        few,
        lambda: resampled(resample_key, predicted.points, weighed, predicted.parent),
        lambda: predicted.at(predicted.points, weighed - gained),
    )
    return after, gained


def spread_out(key: Array, cloud: Cloud, many: int, settings) -> Cloud:
    """Many draws from the density of a kept cloud."""
    density_key, choose_key, noise_key = jax.random.split(key, 3)
    density = cloud_density(density_key, cloud, settings)
    chosen = density.centres[systematic(choose_key, density.log_weights, many)]
    noise = jax.random.normal(noise_key, chosen.shape, chosen.dtype)
    z = jnp.sqrt(1 - density.width**2) * chosen + density.width * noise
    return equally_weighted(density.whitening.restore(z))
