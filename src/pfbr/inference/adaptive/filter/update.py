"""One observation absorbed by a predicted cloud: weigh where that is enough, flow where that is all but exact, temper
the rest.

Weighing needs no density and no score, and most observations need no more: it comes first, and what comes after costs
nothing where it is not needed.
"""

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array

from pfbr.inference.adaptive.filter.absorbed import FLOWED, OVERSAMPLED, WEIGHED, Absorbed, absorbed
from pfbr.inference.adaptive.filter.affine_flow import posterior_map, quadratic
from pfbr.inference.adaptive.filter.cloud import Cloud, resampled
from pfbr.inference.adaptive.filter.ensemble import PER_DIMENSION, ensemble_update
from pfbr.inference.adaptive.filter.exact import is_exact
from pfbr.inference.adaptive.filter.settings import Settings
from pfbr.inference.adaptive.filter.temper import flow_or_temper
from pfbr.inference.adaptive.filter.transitions import Before
from pfbr.particles.particles import ess


def absorb(
    key: Array,
    cloud: Cloud,
    log_likelihood,
    settings: Settings,
    *,
    linear_gaussian: bool = False,
    redraw=None,
    before: Before | None = None,
    error=None,
) -> Absorbed:
    """`log_likelihood`: points (n, d) -> (n,). `error(cloud)`: the Monte Carlo error of a mean. `before`: where the
    dynamics have a density, for that of the predicted cloud. `redraw(key, times)`: so many further draws of the same
    prediction from each particle, (times · n, d), those of one particle together; None where there is no noise."""
    n, d = cloud.points.shape

    def value_and_score(points):
        values, pull = jax.vjp(log_likelihood, points)
        return values, pull(jnp.ones_like(values))[0]

    def judged(result: Absorbed) -> Absorbed:
        return result if error is None else eqx.tree_at(lambda r: r.error, result, error(result.cloud))

    def by_flow():
        seen = quadratic(cloud.points, cloud.weights, value_and_score)
        return judged(absorbed(cloud.at(posterior_map(seen)(cloud.points)), seen.log_evidence, FLOWED))

    if linear_gaussian:
        return by_flow()
    if n < PER_DIMENSION * d:
        moved, log_predictive = ensemble_update(key, cloud, value_and_score, settings.misfit)
        return absorbed(moved, log_predictive, FLOWED)

    values = log_likelihood(cloud.points)

    def weigh_or_work():
        after = judged(weighed(cloud, values))
        return jax.lax.cond(is_enough(after, settings), lambda: after, lambda: judged(work()))

    def work():
        return _oversample(key, cloud, log_likelihood, value_and_score, settings, redraw, before)

    if not settings.find_exact:
        return weigh_or_work()
    return jax.lax.cond(is_exact(cloud, values, value_and_score, settings), by_flow, weigh_or_work)


def is_enough(after: Absorbed, settings: Settings) -> Array:
    """A high share of the particles; or, where there are many of them, a small error of the mean."""
    n = after.cloud.points.shape[0]
    small = (after.error > 0) & (after.error < 1 / jnp.sqrt(settings.enough)) & (after.cloud.ess > settings.enough)
    return (after.cloud.ess > settings.stay * n) | small


def weighed(cloud: Cloud, values: Array) -> Absorbed:
    after = cloud.log_weights + values
    gained = jax.nn.logsumexp(after)
    return absorbed(cloud.at(cloud.points, after - gained), gained, WEIGHED)


def _oversample(
    key: Array, cloud: Cloud, log_likelihood, value_and_score, settings: Settings, redraw, before
) -> Absorbed:
    """Further draws of the dynamics, weighed and thinned, if that leaves enough of the particles they come from."""
    n = cloud.points.shape[0]
    times = settings.draws_each(n) if redraw is not None else 0

    def move():
        noisy = redraw is not None
        return flow_or_temper(key, cloud, log_likelihood, value_and_score, settings, before=before, noisy=noisy)

    if not times:
        return move()
    draw_key, resample_key = jax.random.split(key)
    drawn = redraw(draw_key, times)
    log_weights = jnp.repeat(cloud.log_weights, times) - jnp.log(times) + log_likelihood(drawn)
    by_ancestor = jax.nn.logsumexp(log_weights.reshape(n, times), axis=1)

    def take():
        gained = jax.nn.logsumexp(log_weights)
        thinned = resampled(resample_key, drawn, log_weights, jnp.repeat(cloud.parent, times), n)
        return absorbed(thinned, gained, OVERSAMPLED)

    wanted = jnp.minimum(settings.stay * n, settings.enough)
    left = jnp.minimum(settings.ancestors * n, settings.enough)
    return jax.lax.cond((ess(log_weights) > 2 * wanted) & (ess(by_ancestor) > left), take, move)
