"""Equations to learn from: at exact clouds, spoilt ones, and clouds that the flow made so far has moved."""

from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.particles.whitening import whitening_of
from pfbr.training.general.recipe import Recipe
from pfbr.training.general.rollout import Rolled, ess_share, roll
from pfbr.training.objectives.equations import Equations, equations, usable
from pfbr.training.problems.clouds import SHARES, Clouds
from pfbr.training.problems.problem import Problem
from pfbr.training.problems.term import Kind
from pfbr.typing import Points

LEAST = 0.05  # of the ESS: a cloud that has gone astray altogether teaches nothing about clouds that have not


def spoilt(key, cloud: Points, recipe: Recipe) -> Points:
    """Jitter for half of the clouds, a few far points, and another order."""
    keys = jax.random.split(key, 6)
    frame = whitening_of(cloud)
    noise = lambda key: frame.vectors(jax.random.normal(key, cloud.shape))
    size = recipe.jitter * jax.random.uniform(keys[0])
    far = jax.random.uniform(keys[1], (cloud.shape[0], 1)) < recipe.far
    other = jnp.where(far, frame.mean + 2 * noise(keys[2]), cloud + size * noise(keys[3]))
    chosen = jnp.where(jax.random.bernoulli(keys[4]), other, cloud)
    return jax.random.permutation(keys[5], chosen)


@partial(jax.jit, static_argnames=("kinds", "num"))
def at_clouds(kinds: tuple[Kind, ...], problems: Problem, shares, clouds, num: int) -> tuple[Equations, Any]:
    """Equations of many clouds, one after the other, and which of them are usable."""

    def one(given):
        found = equations(kinds, *given, num)
        return found, usable(found)

    return jax.lax.map(one, (problems, shares, clouds))


@partial(jax.jit, static_argnames=("kinds", "steps"))
def rolled_clouds(kinds: tuple[Kind, ...], problems: Problem, clouds, velocity, steps: int) -> tuple[Rolled, Any]:
    """Clouds on their way, and the share of the ESS that each has left, for many problems."""

    def one(given):
        rolled = roll(velocity, kinds, *given, steps)
        return rolled, jax.vmap(ess_share)(rolled.log_weights)

    return jax.lax.map(one, (problems, clouds))


@partial(jax.jit, static_argnames=("recipe",))
def spoil(key, clouds, recipe: Recipe):
    keys = jax.random.split(key, clouds.shape[0])
    return jax.lax.map(lambda given: spoilt(*given, recipe), (keys, clouds))


class Harvest(NamedTuple):
    """Equations of all dimensions, and what the flow loses of the ESS on the problems that are held out."""

    pool: Equations
    lost: dict[int, float]


class Sheaf(NamedTuple):
    """Clouds to look at: each with its problem, the share of the observation that is in it, and whether it is sane."""

    problems: Problem
    shares: np.ndarray
    clouds: np.ndarray
    sane: np.ndarray


def harvest(
    rng: np.random.Generator, kinds: tuple[Kind, ...], recipe: Recipe, stored: dict[int, Clouds], velocity
) -> Harvest:
    """The last `held` problems of each dimension are rolled forward too, and not learned from."""
    pools, lost = [], {}
    for d, clouds in stored.items():
        exact = _exact(rng, recipe, clouds)
        rolled, lost[d] = _rolled(rng, kinds, recipe, clouds, velocity)
        both: Sheaf = jax.tree.map(lambda *leaves: np.concatenate(leaves), exact, rolled)
        found, good = at_clouds(kinds, both.problems, both.shares, both.clouds, recipe.points)
        pools.append(_some(found, np.flatnonzero(np.asarray(good) & both.sane)))
    return Harvest(jax.tree.map(lambda *leaves: jnp.asarray(np.concatenate(leaves)), *pools), lost)


def _exact(rng: np.random.Generator, recipe: Recipe, stored: Clouds) -> Sheaf:
    """Exact clouds at random times, half of them spoilt."""
    key = jax.random.key(int(rng.integers(2**31)))
    count = recipe.exact_clouds
    chosen, times = rng.integers(len(stored.points) - recipe.held, size=count), rng.integers(len(SHARES), size=count)
    clouds = np.asarray(spoil(key, stored.points[chosen, times], recipe))
    shares = np.asarray(SHARES, clouds.dtype)[times]
    return Sheaf(_some(stored.problem, chosen), shares, clouds, np.ones(count, bool))


def _rolled(
    rng: np.random.Generator, kinds: tuple[Kind, ...], recipe: Recipe, stored: Clouds, velocity
) -> tuple[Sheaf, float]:
    """Clouds that the flow made, at random steps; and what it loses on those that are held out."""
    free = len(stored.points) - recipe.held
    held, others = np.arange(free, free + recipe.held), rng.integers(free, size=recipe.rolled_problems)
    begun = np.concatenate([held, others])
    problems = _some(stored.problem, begun)
    rolled, left = rolled_clouds(kinds, problems, stored.points[begun, 0], velocity, recipe.steps)
    which = np.repeat(np.arange(recipe.held, len(begun)), recipe.snapshots)
    steps = rng.integers(recipe.steps, size=len(which))
    order = rng.permuted(np.tile(np.arange(stored.points.shape[2]), (len(which), 1)), axis=1)
    clouds = np.take_along_axis(np.asarray(rolled.clouds)[which, steps], order[:, :, None], axis=1)
    sane = np.asarray(left)[which, steps] > LEAST
    sheaf = Sheaf(_some(problems, which), np.asarray(rolled.shares)[which, steps], clouds, sane)
    return sheaf, float(1 - np.asarray(left)[: recipe.held, -1].mean())


def _some(tree: Any, chosen: np.ndarray) -> Any:
    return jax.tree.map(lambda leaf: np.asarray(leaf)[chosen], tree)
