"""Where each particle began and what moved it since, while a stream is young: a path that can be replayed.

A path is a start and the noise of every report. Its law is known: prior of the start, times noise, times likelihoods.
No density of a predicted cloud is needed, and none is guessed: a ring of positions whose velocities lean with them has
no kernel estimate worth the name. Noise is standard normals where the model takes them, and a random key where it
draws for itself: a key that is kept gives the same draw again, from another start too.
"""

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array

from pfbr.inference.adaptive.filter.cloud import Cloud
from pfbr.inference.adaptive.filter.model import FilterModel
from pfbr.inference.adaptive.filter.predict import moved
from pfbr.typing import PerParticle, Points

LENGTH = 8  # reports: a replay costs as many predictions, and by then a start hardly matters


class Seen(eqx.Module):
    """Reports of a path, oldest first."""

    observations: Array
    dts: Array
    conditions: object


class Paths(eqx.Module):
    start: Points
    noise: Array  # (LENGTH, n, k)
    seen: Seen
    count: Array  # reports so far
    intact: Array  # nothing but noise, weights and moves of paths has touched the particles

    @property
    def known(self) -> Array:
        """Whether particles are where their paths end."""
        return self.intact & (self.count <= LENGTH)

    @property
    def go_on(self) -> Array:
        """Whether the next report finds them known and with room for its noise."""
        return self.intact & (self.count < LENGTH)

    def opened(self, parent: Array, noise: Array, observation, dt, conditions) -> "Paths":
        """At a report: each path goes on from that of its parent, with this noise."""

        def longer():
            put = lambda kept, new: kept.at[self.count].set(jnp.asarray(new, kept.dtype))
            seen = jax.tree.map(put, self.seen, Seen(observation, dt, conditions))
            return Paths(
                self.start[parent], put(self.noise[:, parent], noise), seen, self.count + 1, jnp.asarray(self.intact)
            )

        def stop():
            return eqx.tree_at(lambda p: p.count, self, jnp.full_like(self.count, LENGTH + 1))

        return jax.lax.cond(self.go_on, longer, stop)

    def chosen(self, parent: Array, noise: Array) -> "Paths":
        """Paths of the particles `parent`, with other noise at the last report."""

        def choose():
            last = jnp.maximum(self.count - 1, 0)
            return self.at(self.start[parent], self.noise[:, parent].at[last].set(noise))

        return jax.lax.cond(self.known, choose, lambda: self)

    def at(self, start: Points, noise: Array) -> "Paths":
        return Paths(start, noise, self.seen, self.count, self.intact)

    def left_by(self, cloud: Cloud) -> "Paths":
        """Particles were taken off their paths."""
        return self.broken_where(True)

    def broken_where(self, broken: Array | bool) -> "Paths":
        return eqx.tree_at(lambda p: p.intact, self, self.intact & ~jnp.asarray(broken))


def first_paths(start: Points, noise: Array, observation, conditions) -> Paths:
    """`noise`, `observation`, `conditions`: examples of what reports bring."""
    seen = room_for(Seen(observation, jnp.zeros((), start.dtype), conditions))
    return Paths(start, room_for(noise), seen, jnp.zeros((), jnp.int32), jnp.array(True))


def room_for(examples):
    """LENGTH of each, all zero."""
    examples = jax.tree.map(jnp.asarray, examples)
    return jax.tree.map(lambda example: jnp.zeros((LENGTH, *example.shape), example.dtype), examples)


class Replayed(eqx.Module):
    points: Points  # where paths end
    before: PerParticle  # log likelihood of all reports but the last
    last: PerParticle


def replay(model: FilterModel, paths: Paths, start: Points, noise: Array) -> Replayed:
    """Other starts and other noise under the reports of these paths."""

    def one(i, so_far: Replayed) -> Replayed:
        here = jax.tree.map(lambda leaf: leaf[i], paths.seen)
        points = moved(model, so_far.points, noise[i], here.dts, here.conditions)
        values = jax.vmap(lambda x: model.log_likelihood(x, here.observations, here.conditions))(points)
        return Replayed(points, so_far.before + so_far.last, jnp.where(jnp.isnan(values), -jnp.inf, values))

    none = jnp.zeros(start.shape[0], start.dtype)
    return jax.lax.fori_loop(0, paths.count, one, Replayed(start, none, none))
