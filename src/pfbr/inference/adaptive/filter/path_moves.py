"""Let an observation in by shares, moving whole paths: every target on the way is exact.

After each share the paths are resampled and make Metropolis moves of several kinds and sizes at once: a step of the
start in the frame of all starts, a share of its noise drawn anew, or the difference of two other paths. Which size is
right is found out: those that went farther in the last round are drawn more often.
"""

from collections.abc import Callable

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array

from pfbr.inference.adaptive.filter.absorbed import TEMPERED, Absorbed, absorbed
from pfbr.inference.adaptive.filter.cloud import Cloud
from pfbr.inference.adaptive.filter.model import FilterModel
from pfbr.inference.adaptive.filter.paths import Paths, Replayed, replay
from pfbr.inference.adaptive.filter.settings import Settings
from pfbr.particles.particles import ess
from pfbr.particles.particles import normalise as normalised
from pfbr.particles.resampling import systematic
from pfbr.particles.tempering_share import tempering_share
from pfbr.particles.whitening import whitening_of
from pfbr.typing import PerParticle, Points

SIZES = (1.0, 0.4, 0.15, 0.06, 0.025, 0.01, 0.004)  # of a step, in the frame: one of them fits, however thin the target


class Effort(eqx.Module):
    """How long the moves of a round go on, and what they may change."""

    accepted: float = eqx.field(static=True, default=2.0)  # moves of each path, on average, that end a round
    moves: int = eqx.field(static=True, default=16)  # of a round at most
    noisy: bool = eqx.field(static=True, default=True)  # else there is nothing to a path but its start


class _Population(eqx.Module):
    start: Points
    noise: Array
    replayed: Replayed
    log_prior: PerParticle
    accepted: PerParticle


class _Progress(eqx.Module):
    """The carry of the tempering loop."""

    key: Array
    done: Array  # the share of the last log likelihood that is in
    population: _Population
    log_weights: PerParticle
    family: Array
    parent: Array
    gained: Array
    rounds: Array
    usefulness: Array  # of each size


class _Moving(eqx.Module):
    """The carry of the moves of a round."""

    key: Array
    population: _Population
    tries: Array  # of each size
    length: Array  # moved by each size, in its own units
    moves: Array


def move_paths(
    key: Array,
    model: FilterModel,
    cloud: Cloud,
    paths: Paths,
    settings: Settings,
    log_start: Callable[[Points], Array] | None = None,
    effort: Effort = Effort(),
) -> Absorbed:
    """`log_start`: log densities of starts, up to a constant; None: the model's prior."""
    n = cloud.points.shape[0]
    log_prior = jax.vmap(model.first_at().log_prior) if log_start is None else log_start
    first = replay(model, paths, paths.start, paths.noise)
    population = _Population(paths.start, paths.noise, first, log_prior(paths.start), jnp.zeros(n))

    def round_of(progress: _Progress) -> _Progress:
        key, resample_key, move_key = jax.random.split(progress.key, 3)
        values, left = progress.population.replayed.last, 1 - progress.done
        enough = settings.temper * n
        share = tempering_share(progress.log_weights, values, left, enough, shortest=1e-4 * left)
        weighed = progress.log_weights + share * values
        gained, ancestors = jax.nn.logsumexp(weighed), systematic(resample_key, normalised(weighed), n)
        # all of it is in and most of the paths count: weights may stay as they are
        done, last = progress.done + share, (share >= left) & (ess(weighed) > settings.stay * n)

        def move():
            pick = lambda leaf: leaf[ancestors]
            p = progress.population
            now = _Population(
                pick(p.start), p.noise[:, ancestors], jax.tree.map(pick, p.replayed), pick(p.log_prior), jnp.zeros(n)
            )
            now, usefulness = _moves(move_key, model, log_prior, paths, now, done, progress.usefulness, effort)
            return now, jnp.full(n, -jnp.log(n)), ancestors, progress.parent[ancestors], usefulness

        def settle():
            return progress.population, weighed - gained, progress.family, progress.parent, progress.usefulness

        population, log_weights, family, parent, usefulness = jax.lax.cond(last, settle, move)
        return _Progress(
            key,
            done,
            population,
            log_weights,
            family,
            parent,
            progress.gained + gained,
            progress.rounds + 1,
            usefulness,
        )

    zero = jnp.zeros(())
    start = _Progress(
        key,
        zero,
        population,
        cloud.log_weights,
        cloud.family,
        cloud.parent,
        zero,
        jnp.zeros((), jnp.int32),
        jnp.asarray(SIZES),
    )
    end = jax.lax.while_loop(lambda p: (p.done < 1) & (p.rounds < settings.rounds), round_of, start)
    after = Cloud(end.population.replayed.points, end.log_weights, end.family, end.parent)
    acceptance = jnp.mean(end.population.accepted > 0)
    result = absorbed(after, end.gained, TEMPERED, end.rounds, acceptance, 1.0, end.done < 1)
    return eqx.tree_at(
        lambda r: (r.paths, r.renewed),
        result,
        (paths.at(end.population.start, end.population.noise), jnp.array(True)),
        is_leaf=lambda leaf: leaf is None,
    )


def _moves(
    key, model, log_prior, paths: Paths, now: _Population, done, usefulness, effort: Effort
) -> tuple[_Population, Array]:
    n = now.start.shape[0]
    frame = whitening_of(now.start, jnp.full(n, 1 / n), shrink=False)
    others = now  # as they were when the round began: moves that look at them stay reversible
    log_chances = jnp.log(usefulness)

    def target(replayed: Replayed, prior):
        value = prior + replayed.before + done * replayed.last
        return jnp.where(jnp.isnan(value), -jnp.inf, value)

    def move(carry: _Moving) -> _Moving:
        key, size_key, propose_key, accept_key = jax.random.split(carry.key, 4)
        p = carry.population
        which = jax.random.categorical(size_key, log_chances, shape=(n,))
        size = jnp.asarray(SIZES)[which]
        start, noise, ratio = _proposed(propose_key, paths, p, others, frame, size, effort.noisy)
        replayed, prior = replay(model, paths, start, noise), log_prior(start)
        gain = target(replayed, prior) - target(p.replayed, p.log_prior) + ratio
        accept = jnp.log(jax.random.uniform(accept_key, (n,))) < gain
        keep = lambda new, old: jnp.where(accept.reshape((-1,) + (1,) * (new.ndim - 1)), new, old)
        after = _Population(
            keep(start, p.start),
            jnp.where(accept[None, :, None], noise, p.noise),
            jax.tree.map(keep, replayed, p.replayed),
            keep(prior, p.log_prior),
            p.accepted + accept,
        )
        tries = jax.ops.segment_sum(jnp.ones(n), which, len(SIZES))
        length = jax.ops.segment_sum(jnp.where(accept, size, 0.0), which, len(SIZES))
        return _Moving(key, after, carry.tries + tries, carry.length + length, carry.moves + 1)

    zeros = jnp.zeros(len(SIZES))
    begun = _Moving(key, now, zeros, zeros, jnp.zeros((), jnp.int32))
    ended = jax.lax.while_loop(
        lambda c: (jnp.mean(c.population.accepted) < effort.accepted) & (c.moves < effort.moves), move, begun
    )
    # a size that moved nothing keeps a small chance: the next target is thinner
    useful = (ended.length + 0.02 * jnp.max(ended.length)) / jnp.maximum(ended.tries, 1.0)
    useful = jnp.where(jnp.max(useful) > 0, useful, jnp.asarray(SIZES))
    return ended.population, jnp.maximum(useful, 0.05 * jnp.max(useful))


def _proposed(key, paths: Paths, p: _Population, others: _Population, frame, size, noisy: bool):
    """Start, noise, and the log ratio of what the noise itself weighs. Half of the paths step in the frame, half go by
    the difference of two others; of each half, some take their noise along."""
    n, d = p.start.shape
    kind_key, along_key, step_key, noise_key, first_key, second_key, place_key = jax.random.split(key, 7)
    reach = (size * 2.4 / jnp.sqrt(d))[:, None]
    by_difference = jax.random.bernoulli(kind_key, 0.5, (n, 1))
    along = jax.random.bernoulli(along_key, 0.5, (n, 1))
    first, second = (jax.random.randint(k, (n,), 0, n) for k in (first_key, second_key))
    step = frame.vectors(jax.random.normal(step_key, (n, d)))
    difference = others.start[first] - others.start[second]
    start = p.start + reach * jnp.where(by_difference, difference, step)
    if not noisy:
        return start, p.noise, jnp.zeros(n)
    if not jnp.issubdtype(p.noise.dtype, jnp.floating):
        # a key has no neighbours: one report's is drawn anew, its start stays
        place = jax.random.randint(place_key, (n,), 0, jnp.maximum(paths.count, 1))
        fresh = jax.random.bits(noise_key, p.noise.shape[1:], p.noise.dtype)
        swap = (jnp.arange(p.noise.shape[0])[:, None] == place)[..., None] & along
        start = jnp.where(along & ~by_difference, p.start, start)
        swap = swap & ~by_difference
        return start, jnp.where(swap, fresh, p.noise), jnp.zeros(n)
    share = jnp.minimum(reach, 1.0)
    turned = jnp.sqrt(1 - share**2) * p.noise + share * jax.random.normal(noise_key, p.noise.shape)
    shifted = p.noise + reach * (others.noise[:, first] - others.noise[:, second])
    used = (jnp.arange(p.noise.shape[0]) < paths.count)[:, None, None]
    noise = jnp.where(along & used, jnp.where(by_difference, shifted, turned), p.noise)
    weight = -0.5 * jnp.sum(noise**2 - p.noise**2, axis=(0, 2))
    return start, noise, jnp.where((along & by_difference)[:, 0], weight, 0.0)
