"""Draws of the densities between prior and posterior, by tempered SMC: how a problem looks to a flow on its way."""

import itertools

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp
from jaxtyping import Array, Bool, Float

from pfbr.particles.resampling import systematic
from pfbr.particles.whitening import whitening_of
from pfbr.training.problems.problem import Problem
from pfbr.training.problems.term import Kind, log_likelihood
from pfbr.typing import Key, Points, Scalar

SHARES = (0.0, 0.03, 0.12, 0.35, 1.0)  # of the new observation, after which a cloud is kept: early ones differ most
ROUNDS_BEFORE, ROUNDS_EACH, MOVES = 10, 3, 6  # to the density before the observation, between two shares, in a round


class Clouds(eqx.Module):
    """A problem, and draws of prior · old · new^share for each of the shares."""

    problem: Problem
    points: Float[Array, "s n d"]


class _Walk(eqx.Module):
    points: Points
    value: Float[Array, " n"]
    score: Points
    size: Scalar
    begun: Bool[Array, ""]


def draw_clouds(
    key: Key, problem: Problem, kinds: tuple[Kind, ...], num: int, shares: tuple[float, ...] = SHARES
) -> Clouds:
    """Resample and move: Langevin steps of many sizes, accepted by Metropolis, in the frame of the cloud."""
    levels = _levels(shares)
    terms = jax.tree.map(lambda old, new: jnp.concatenate([old, new]), problem.old, problem.new)

    def log_density(x, level):
        each = jnp.repeat(
            level, jnp.array([problem.old.on.shape[0], problem.new.on.shape[0]]), total_repeat_length=len(terms.on)
        )
        return problem.prior.log_density(x) + log_likelihood(kinds, terms, x, each)

    def one_round(carry, step):
        key, here, there = step
        points, size = carry
        resample_key, move_key = jax.random.split(key)
        # linear in the level, so that the change of level is all that has to be computed
        ratio = jax.vmap(lambda x: log_density(x, there - here) - problem.prior.log_density(x))(points)
        ratio = jnp.where(jnp.isfinite(ratio), ratio, -jnp.inf)
        points = points[systematic(resample_key, jax.nn.log_softmax(ratio), num)]
        frame = whitening_of(points)

        def move(walk: _Walk, key):
            size_key, noise_key, accept_key = jax.random.split(key, 3)
            size = walk.size * jnp.exp(jax.random.uniform(size_key, (num, 1), minval=-2.5, maxval=0.3))
            noise = jax.random.normal(noise_key, walk.points.shape)
            step = 0.5 * size**2 * frame.covectors(walk.score) + size * noise
            # the first move stays and only finds value and score, so that these are compiled once
            proposed = walk.points + jnp.where(walk.begun, frame.vectors(step), 0)
            value, score = jax.vmap(jax.value_and_grad(lambda x: log_density(x, there)))(proposed)
            back = (-step - 0.5 * size**2 * frame.covectors(score)) / size
            ratio = value - walk.value + 0.5 * jnp.sum(noise**2 - back**2, axis=1)
            accept = jnp.log(jax.random.uniform(accept_key, (num,))) < jnp.where(jnp.isfinite(ratio), ratio, -jnp.inf)
            accept = accept | ~walk.begun
            choose = lambda a, b: jnp.where(accept.reshape((num,) + (1,) * (a.ndim - 1)), a, b)
            fitted = jnp.where(walk.begun, walk.size * jnp.exp(0.3 * (jnp.mean(accept) - 0.6)), walk.size)
            chosen = choose(proposed, walk.points), choose(value, walk.value), choose(score, walk.score)
            return _Walk(*chosen, fitted, jnp.asarray(True)), None

        begin = _Walk(points, jnp.zeros(num), jnp.zeros_like(points), size, jnp.asarray(False))
        walk, _ = jax.lax.scan(move, begin, jax.random.split(move_key, MOVES + 1))
        return (walk.points, walk.size), walk.points

    start_key, key = jax.random.split(key)
    start = (problem.prior.sample(start_key, num), jnp.asarray(0.8))
    _, visited = jax.lax.scan(one_round, start, (jax.random.split(key, len(levels) - 1), levels[:-1], levels[1:]))
    return Clouds(problem, visited[ROUNDS_BEFORE - 1 :: ROUNDS_EACH])


def _levels(shares: tuple[float, ...]) -> Float[Array, "rounds 2"]:
    """How much of the old terms and of the new ones is in, round after round."""
    old = [(level**2, 0.0) for level in np.linspace(0, 1, ROUNDS_BEFORE + 1)]
    new = [(1.0, share) for a, b in itertools.pairwise(shares) for share in np.linspace(a, b, ROUNDS_EACH + 1)[1:]]
    return jnp.asarray(old + new)
