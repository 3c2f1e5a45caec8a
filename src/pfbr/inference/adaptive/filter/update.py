"""One observation absorbed by a predicted cloud: weigh where that is enough, flow where that is all but exact, temper
the rest.

Weighing needs no density and no score, and most observations need no more: it comes first, and what comes after costs
nothing where it is not needed.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array

from pfbr.flow.transport.transport import Transport
from pfbr.inference.adaptive.filter.absorbed import FLOWED, OVERSAMPLED, WEIGHED, Absorbed, absorbed
from pfbr.inference.adaptive.filter.affine_flow import posterior_map, quadratic
from pfbr.inference.adaptive.filter.cloud import Cloud, resampled
from pfbr.inference.adaptive.filter.ensemble import PER_DIMENSION, ensemble_update
from pfbr.inference.adaptive.filter.exact import is_exact
from pfbr.inference.adaptive.filter.paths import Paths
from pfbr.inference.adaptive.filter.settings import Settings
from pfbr.inference.adaptive.filter.temper import flow_or_temper
from pfbr.inference.adaptive.filter.transitions import Before
from pfbr.inference.adaptive.filter.window import Window
from pfbr.particles.particles import ess

SPACE = 2  # dimensions: on a line further draws of the dynamics come before flows, and no map is tried
FEW = 128  # particles for each dimension: with more, sixteen times as many draws are as good as a flow, in less time
QUADRATIC = 1e-3  # nats by which rounding alone may miss a quadratic


class Ways(eqx.Module):
    """What else a cloud can do than weigh, flow and follow kernels; None: it cannot.

    `redraw(key, times)`: so many further draws of the same prediction from each particle, (times · n, d), those of one
    particle together, and their noise. `before`: where the dynamics have a density, for that of the predicted cloud.
    `transport`: the learned map, to be tried where the affine flow is not all but exact. `paths` end at the particles,
    and `move_paths(key, cloud, paths)` absorbs the observation with them.
    """

    redraw: Callable | None = eqx.field(static=True, default=None)
    before: Before | None = None
    transport: Transport | None = None
    paths: Paths | Window | None = None
    move_paths: Callable | None = eqx.field(static=True, default=None)


def absorb(
    key: Array,
    cloud: Cloud,
    log_likelihood,
    settings: Settings,
    ways: Ways = Ways(),
    *,
    linear_gaussian: bool = False,
    may_be_exact: Array | bool = True,
    error=None,
    weigh_only: bool = False,
) -> Absorbed:
    """`log_likelihood`: points (n, d) -> (n,). `error(result)`: the Monte Carlo error of its mean, to which
    that of an estimated density is added. `may_be_exact`: False where the cloud cannot be Gaussian.
    `weigh_only`: what is cheap, be it enough or not."""
    n, d = cloud.points.shape

    def left_by(cloud: Cloud):
        return None if ways.paths is None else ways.paths.left_by(cloud)

    def value_and_score(points):
        values, pull = jax.vjp(log_likelihood, points)
        return values, pull(jnp.ones_like(values))[0]

    def judged(result: Absorbed) -> Absorbed:
        if error is None:
            return result
        return eqx.tree_at(lambda r: r.error, result, jnp.hypot(result.error, error(result)))

    def by_flow():
        seen = quadratic(cloud.points, cloud.weights, value_and_score)
        moved = cloud.at(posterior_map(seen)(cloud.points))
        return judged(absorbed(moved, seen.log_evidence, FLOWED, paths=left_by(moved)))

    if linear_gaussian:
        return by_flow()
    if n < PER_DIMENSION * d and not isinstance(ways.paths, Window):
        moved, log_predictive, stuck = ensemble_update(key, cloud, value_and_score, settings.misfit)
        return absorbed(moved, log_predictive, FLOWED, unfinished=stuck, paths=left_by(moved))

    values = log_likelihood(cloud.points)

    after = judged(weighed(cloud, values, ways.paths))
    enough = is_enough(after, settings)

    def weigh_or_work():
        return after if weigh_only else jax.lax.cond(enough, lambda: after, lambda: judged(work()))

    def work():
        return _oversample(key, cloud, log_likelihood, settings, ways, by_density)

    def by_density(instead=None):
        return flow_or_temper(
            key,
            cloud,
            log_likelihood,
            value_and_score,
            settings,
            before=ways.before,
            noisy=ways.redraw is not None,
            transport=ways.transport if d >= SPACE else None,  # on a line further draws are as good, and see all modes
            paths=left_by(cloud),
            instead=instead,
        )

    if not settings.find_exact:
        return weigh_or_work()
    # what a likelihood misses of being quadratic is an error of the flow; weighing has none, where it is enough
    misfit = jnp.where(enough, QUADRATIC, settings.misfit)
    exact = may_be_exact & is_exact(cloud, values, value_and_score, misfit)
    return jax.lax.cond(exact, by_flow, weigh_or_work)


def is_enough(after: Absorbed, settings: Settings) -> Array:
    """A high share of the particles; or, where there are many of them, a small error of the mean; an exact flow.

    Where they are few for the dimension, a flow loses less than any weighing: small errors add up report by report.
    """
    n, d = after.cloud.points.shape
    small = (after.error > 0) & (after.error < 1 / jnp.sqrt(settings.enough)) & (after.cloud.ess > settings.enough)
    return (after.cloud.ess > settings.stay * n) | (small & (n > FEW * d)) | (after.move == FLOWED)


def weighed(cloud: Cloud, values: Array, paths: Paths | Window | None = None) -> Absorbed:
    after = cloud.log_weights + values
    gained = jax.nn.logsumexp(after)
    return absorbed(cloud.at(cloud.points, after - gained), gained, WEIGHED, paths=paths)


def _oversample(key: Array, cloud: Cloud, log_likelihood, settings: Settings, ways: Ways, by_density) -> Absorbed:
    """Further draws of the dynamics, weighed and thinned, if that leaves enough of the particles they come from.

    On a line they come first, and where particles are many; in a space a flow that is all but exact does: sixteen draws
    fill a line, and no space. Young paths move where neither is enough; what is left, flows and kernels take in.
    """
    (n, d), paths = cloud.points.shape, ways.paths
    times = settings.draws_each(n) if ways.redraw is not None else 0
    known = jnp.asarray(False if paths is None else paths.known)

    def move_paths() -> Absorbed:
        return ways.move_paths(key, cloud, paths)  # type: ignore[misc]

    def move() -> Absorbed:
        if paths is None:
            return by_density()
        return move_paths() if isinstance(paths, Window) else jax.lax.cond(known, move_paths, by_density)

    if not times:
        return move()
    draw_key, resample_key = jax.random.split(key)

    def draw() -> Drawn:
        drawn, noise = ways.redraw(draw_key, times)  # type: ignore[misc]
        log_weights = jnp.repeat(cloud.log_weights, times) - jnp.log(times) + log_likelihood(drawn)
        return Drawn(drawn, noise, log_weights)

    def is_fine(drawn: Drawn) -> Array:
        by_ancestor = jax.nn.logsumexp(drawn.log_weights.reshape(n, times), axis=1)
        wanted = jnp.minimum(settings.stay * n, settings.enough)
        left = jnp.minimum(settings.ancestors * n, settings.enough)
        return (ess(drawn.log_weights) > 2 * wanted) & (ess(by_ancestor) > left)

    def thinned(drawn: Drawn) -> Absorbed:
        gained, parent = jax.nn.logsumexp(drawn.log_weights), jnp.repeat(cloud.parent, times)
        few = resampled(resample_key, drawn.points, drawn.log_weights, parent, n, match=~known)
        chosen = None
        if isinstance(paths, Paths):
            chosen = paths.chosen(few.family // times, drawn.noise[few.family])
        return absorbed(few, gained, OVERSAMPLED, paths=chosen)

    if d < SPACE or n > min(settings.tempered, FEW * d) or isinstance(paths, Window):
        drawn = draw()
        return jax.lax.cond(is_fine(drawn), lambda: thinned(drawn), move)

    def instead() -> tuple[Array, Absorbed]:
        drawn = draw()
        fine = is_fine(drawn)
        if paths is None:
            return fine, thinned(drawn)
        return fine | known, jax.lax.cond(known & ~fine, move_paths, lambda: thinned(drawn))

    return by_density(instead)


class Drawn(eqx.Module):
    """Further draws of the dynamics, those of one particle together."""

    points: Array
    noise: Any  # of each draw, where the model takes it
    log_weights: Array
