"""Steps to learn from: those that the flow made so far takes from exact draws."""

from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

from pfbr.flow.fields.active import MOST
from pfbr.training.general.recipe import Recipe
from pfbr.training.general.rollout import Rolled, ess_share, roll
from pfbr.training.objectives.kicks import Lesson, usable
from pfbr.training.problems.clouds import SHARES, Clouds
from pfbr.training.problems.problem import Problem
from pfbr.training.problems.term import Kind

LEAST = 0.05  # of the ESS: a cloud that has gone astray altogether teaches nothing about clouds that have not


@partial(jax.jit, static_argnames=("kinds", "steps"))
def rolled_clouds(kinds: tuple[Kind, ...], problems: Problem, clouds, begun, chosen, velocity, steps: int):
    """For many problems, one after the other: what there is to learn, which of it is usable, and the ESS left."""

    def one(given):
        problem, cloud, begun, chosen = given
        rolled: Rolled = roll(velocity, kinds, problem, cloud, steps, begun=begun, chosen=chosen)
        return rolled.lessons, jax.vmap(usable)(rolled.lessons), jax.vmap(ess_share)(rolled.log_weights)

    return jax.lax.map(one, (problems, clouds, begun, chosen))


class Harvest(NamedTuple):
    """Lessons of each dimension, and what the flow loses of the ESS on the problems that are held out."""

    pools: dict[int, Lesson]
    lost: dict[int, float]


def harvest(
    rng: np.random.Generator, kinds: tuple[Kind, ...], recipe: Recipe, stored: dict[int, Clouds], velocity
) -> Harvest:
    """The last `held` problems of each dimension are rolled forward too, and not learned from."""
    pools, lost = {}, {}
    for d, clouds in stored.items():
        free = len(clouds.points) - recipe.held
        held, others = np.arange(free, free + recipe.held), rng.permutation(free)[: recipe.rolled_problems]
        begun = np.concatenate([held, others])
        # most of them from before the observation, the others from somewhere on the way
        late = np.where(rng.random(len(begun)) < recipe.late, rng.integers(1, len(SHARES) - 1, size=len(begun)), 0)
        late[: recipe.held] = 0
        n = clouds.points.shape[2]
        chosen = rng.permuted(np.tile(np.arange(n), (len(begun), 1)), axis=1)[:, : recipe.points]
        points = clouds.points[begun, late]
        shares = np.asarray(SHARES, points.dtype)[late]
        lessons, good, left = rolled_clouds(
            kinds, _some(clouds.problem, begun), points, shares, chosen, velocity, recipe.steps
        )
        left = np.asarray(left)
        lost[d] = float(1 - left[: recipe.held, -1].mean())
        # a step is worth learning from as long as the one before it left something
        before = np.concatenate([np.ones((len(begun), 1)), left[:, :-1]], axis=1)
        good = np.asarray(good) & (before > LEAST)
        good[: recipe.held] = False
        usable_rows = np.flatnonzero(good.ravel())
        # always as many, some of them twice, so that learning is compiled once
        rows = np.resize(rng.permutation(usable_rows), recipe.rolled_problems * recipe.steps)
        flat = jax.tree.map(lambda leaf: np.asarray(leaf).reshape(-1, *leaf.shape[2:]), lessons)
        pools[d] = jax.tree.map(jnp.asarray, _padded(_some(flat, rows)))  # once: they are large
    return Harvest(pools, lost)


def _padded(lessons: Lesson) -> Lesson:
    """With as many active directions as there can be: those that are not there have no vectors."""
    parts = lambda lesson: (
        lesson.turn.given.slopes,
        lesson.turn.given.vectors,
        lesson.turn.given.jacobians,
        lesson.turn.carry,
    )
    slopes, vectors, jacobians, carry = parts(lessons)
    more = MOST - vectors.shape[2]
    fill: Any = lambda leaf, *axes: np.pad(leaf, [(0, more if axis in axes else 0) for axis in range(leaf.ndim)])
    return eqx.tree_at(parts, lessons, (fill(slopes, 2), fill(vectors, 2), fill(jacobians, 2, 3), fill(carry, 1)))


def _some(tree: Any, chosen: np.ndarray) -> Any:
    return jax.tree.map(lambda leaf: np.asarray(leaf)[chosen], tree)
