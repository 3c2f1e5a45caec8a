"""Dynamics without noise: a particle is where it was a few reports ago, carried on.

Noise parts copies of a particle; without it they stay together, and a kernel estimate of the predicted cloud puts
particles where no path leads. So the last clouds are kept, and where each of today's particles was then. The law of the
oldest place is known but for the law of one cloud, LENGTH reports back: density of that cloud, times likelihoods since.
What a kernel estimate gets wrong there, the reports since have mostly put right.
"""

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array

from pfbr.inference.adaptive.filter.absorbed import Absorbed
from pfbr.inference.adaptive.filter.cloud import Cloud
from pfbr.inference.adaptive.filter.density import cloud_density
from pfbr.inference.adaptive.filter.model import FilterModel
from pfbr.inference.adaptive.filter.path_moves import Effort, move_paths
from pfbr.inference.adaptive.filter.paths import LENGTH, Paths, Seen, room_for
from pfbr.inference.adaptive.filter.predict import draw_noise, moved
from pfbr.inference.adaptive.filter.settings import Settings
from pfbr.typing import Points

# particles a dimension, at least: with 10 (Lorenz-96, d = 10) paths win over an ensemble, 0.27 against 0.30
PER_DIMENSION = 10


class Window(eqx.Module):
    """The last LENGTH reports, oldest first, and the clouds before each; the first cloud stands for all before it."""

    clouds: Cloud  # each leaf leads with LENGTH
    trail: Array  # (LENGTH, n, d): where each of today's particles was
    seen: Seen
    count: Array  # reports since the first cloud, at most LENGTH
    from_prior: Array  # the oldest cloud is draws from the prior

    @property
    def known(self) -> Array:
        return jnp.array(True)

    def opened(self, cloud: Cloud, observation, dt, conditions) -> "Window":
        """At a report: the cloud before it is kept, the oldest one goes."""

        def push(kept, new):
            return jnp.concatenate([kept[1:], jnp.asarray(new, kept.dtype)[None]])

        return Window(
            jax.tree.map(push, self.clouds, cloud),
            push(self.trail, cloud.points),
            jax.tree.map(push, self.seen, Seen(observation, dt, conditions)),
            jnp.minimum(self.count + 1, LENGTH),
            self.from_prior & (self.count < LENGTH),
        )

    def left_by(self, cloud: Cloud) -> "Window":
        """Where particles were taken off their paths, they begin anew from here."""
        fresh = _filled_with(cloud)
        return Window(fresh, fresh.points, self.seen, jnp.zeros_like(self.count), jnp.zeros_like(self.from_prior))

    def as_paths(self, noise: Array) -> Paths:
        """From the oldest cloud on, with noise that moves nothing."""
        seen = jax.tree.map(lambda leaf: jnp.roll(leaf, self.count, axis=0), self.seen)
        noise = jnp.zeros((LENGTH, *noise.shape), noise.dtype)
        return Paths(self.trail[0], noise, seen, self.count, jnp.array(True))


def first_window(cloud: Cloud, observation, conditions) -> Window:
    """`observation`, `conditions`: examples of what reports bring."""
    clouds = _filled_with(cloud)
    seen = room_for(Seen(observation, jnp.zeros((), cloud.points.dtype), conditions))
    return Window(clouds, clouds.points, seen, jnp.zeros((), jnp.int32), jnp.array(True))


def move_in_window(key: Array, model: FilterModel, cloud: Cloud, window: Window, settings: Settings) -> Absorbed:
    """The last observation let in by moves of where particles were when the window began."""
    density_key, noise_key, key = jax.random.split(key, 3)
    oldest = jax.tree.map(lambda leaf: leaf[0], window.clouds)
    density = cloud_density(density_key, oldest, settings)
    log_prior = jax.vmap(model.first_at().log_prior)

    def log_start(points: Points) -> Array:
        return jax.lax.cond(window.from_prior, log_prior, lambda points: density.relative(points), points)

    paths = window.as_paths(draw_noise(noise_key, model, cloud))
    # a walk in d dimensions forgets where it began after about as many moves that are accepted
    effort = Effort(accepted=model.dim + 3.0, moves=3 * model.dim + 9, noisy=False)
    result = move_paths(key, model, cloud, paths, settings, log_start, effort)
    start = result.paths.start
    beyond = jnp.where(window.from_prior, 0.0, result.cloud.weights @ density.beyond(start))
    trail = _trail(model, window, result.paths)
    kept = eqx.tree_at(lambda w: w.trail, window, trail)
    return eqx.tree_at(lambda r: (r.paths, r.beyond), result, (kept, beyond))


def _trail(model: FilterModel, window: Window, paths: Paths) -> Array:
    """Where particles were before each report of the window; before its first one, where they began."""

    def one(points, row):
        i, here = row
        after = moved(model, points, paths.noise[0], here.dts, here.conditions)
        return jnp.where(i >= LENGTH - window.count, after, points), points

    return jax.lax.scan(one, paths.start, (jnp.arange(LENGTH), window.seen))[1]


def _filled_with(cloud: Cloud) -> Cloud:
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (LENGTH, *leaf.shape)), cloud)
