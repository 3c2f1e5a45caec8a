"""A second look: when an observation surprises the whole cloud, something was lost earlier.

The older of the two clouds that the lineage keeps (the prior itself, if the stream is that young) is made into many
more particles and the reports since are replayed. What comes out replaces the cloud if its evidence for these reports
is higher and enough of its particles counted all along; otherwise the observation is an outlier, and the cloud stays.
"""

import jax
from jax import numpy as jnp
from jaxtyping import Array

from pfbr.inference.adaptive.filter.absorbed import FLOWED, TEMPERED, Absorbed
from pfbr.inference.adaptive.filter.cloud import Cloud, equally_weighted, resampled
from pfbr.inference.adaptive.filter.density import cloud_density
from pfbr.inference.adaptive.filter.lineage import Lineage
from pfbr.inference.adaptive.filter.model import log_likelihoods
from pfbr.inference.adaptive.filter.predict import first_cloud, predict
from pfbr.inference.adaptive.filter.settings import Settings
from pfbr.particles.particles import ess
from pfbr.particles.resampling import systematic
from pfbr.particles.summation import CompensatedSum

DRAWS = 64  # observations that the cloud makes up, to know how it would score them
JUDGES = 1024  # particles that score them
GAIN = 2.0  # nats of evidence that a replay must gain
LEAST = 1 / 128  # of the particles must count after each of its reports, or it has lost itself
TIMES = 4  # as many particles as the filter has, at least


def is_doubtful(result: Absorbed, lineage: Lineage) -> Array:
    """Whether it has to be asked: where particles were tempered, and where they flowed and the observation scores less
    than all the last ones. A cloud that has shrunk to a point is Gaussian too, and flows anywhere."""
    return (result.move == TEMPERED) | ((result.move == FLOWED) & (result.log_predictive < _lowest(lineage)))


def _lowest(lineage: Lineage) -> Array:
    last = lineage.reports.log_predictives
    there = jnp.arange(last.shape[0]) >= last.shape[0] - lineage.count
    return jnp.where(lineage.count > 0, jnp.min(jnp.where(there, last, jnp.inf)), -jnp.inf)


def surprised(key: Array, model, predicted: Cloud, result: Absorbed, lineage: Lineage, conditions, nats) -> Array:
    """Is the log predictive density far below those of observations that the predicted cloud itself would make?

    Models that cannot make observations are asked for their last log predictives instead.
    """
    if not model.offers("sample_observation"):
        return (result.log_predictive < _lowest(lineage) - nats) & (lineage.count > 4)

    def ask():
        choose_key, draw_key, judge_key = jax.random.split(key, 3)
        chosen = predicted.points[systematic(choose_key, predicted.log_weights, DRAWS)]
        made_up = jax.vmap(lambda k, x: model.sample_observation(k, x, conditions))(
            jax.random.split(draw_key, DRAWS), chosen
        )
        points, log_weights = predicted.points, predicted.log_weights
        if points.shape[0] > JUDGES:
            points = points[systematic(judge_key, log_weights, JUDGES)]
            log_weights = jnp.full(JUDGES, -jnp.log(JUDGES), points.dtype)
        score = lambda y: jax.nn.logsumexp(log_weights + log_likelihoods(model, points, y, conditions))
        return result.log_predictive < jnp.min(jax.lax.map(score, made_up)) - nats

    return jax.lax.cond(is_doubtful(result, lineage), ask, lambda: jnp.array(False))


def look_again(
    key: Array, model, cloud: Cloud, log_evidence: CompensatedSum, lineage: Lineage, settings: Settings
) -> tuple[Cloud, CompensatedSum, Array]:
    """The reports since the older cloud once more, today's included, with many more particles: cloud, log evidence, and
    whether they are new."""
    start_key, replay_key, thin_key = jax.random.split(key, 3)
    n = cloud.points.shape[0]
    many = max(settings.second_look_particles, TIMES * n)
    older, reports = lineage.older, lineage.reports
    start = jax.lax.cond(
        older.is_prior,
        lambda: first_cloud(start_key, model, many),
        lambda: spread_out(start_key, older.cloud, many, settings),
    )
    length = reports.dts.shape[0]

    def replay(carry, row):
        i, report = row

        def go(cloud, evidence, least):
            here = jax.random.fold_in(replay_key, i)
            after, gained, size = _weighed(here, model, cloud, report.observations, report.dts, report.conditions)
            return after, evidence.add(gained), jnp.minimum(least, size)

        return jax.lax.cond(i >= length - older.age, go, lambda *carry: carry, *carry), None

    begun = start, older.log_evidence, jnp.full((), many, start.points.dtype)
    (found, evidence, least), _ = jax.lax.scan(replay, begun, (jnp.arange(length), reports))
    better = (evidence.value > log_evidence.value + GAIN) & (least > LEAST * many)
    found = resampled(thin_key, found.points, found.log_weights, found.parent, n)
    pick = lambda new, old: jax.tree.map(lambda a, b: jnp.where(better, a, b), new, old)
    return pick(found, cloud), pick(evidence, log_evidence), better


def _weighed(key: Array, model, cloud: Cloud, observation, dt, conditions) -> tuple[Cloud, Array, Array]:
    """A step of the plain bootstrap filter: with so many particles weighing is enough, and it compiles in a moment.
    Cloud, log predictive density, ESS."""
    predict_key, resample_key = jax.random.split(key)
    predicted = predict(predict_key, model, cloud, dt, conditions, match=False)
    weighed = predicted.log_weights + log_likelihoods(model, predicted.points, observation, conditions)
    gained = jax.nn.logsumexp(weighed)
    size = ess(weighed)
    after = jax.lax.cond(
        size < 0.5 * weighed.shape[0],
        lambda: resampled(resample_key, predicted.points, weighed, predicted.parent),
        lambda: predicted.at(predicted.points, weighed - gained),
    )
    return after, gained, size


def spread_out(key: Array, cloud: Cloud, many: int, settings: Settings) -> Cloud:
    """Many draws from the density of a kept cloud."""
    density_key, choose_key, noise_key = jax.random.split(key, 3)
    density = cloud_density(density_key, cloud, settings)
    chosen = density.centres[systematic(choose_key, density.log_weights, many)]
    noise = jax.random.normal(noise_key, chosen.shape, chosen.dtype)
    z = jnp.sqrt(1 - density.width**2) * chosen + density.width * noise
    return equally_weighted(density.whitening.restore(z))
