"""Learn one operator for every model: take steps of the flow, learn from them, and roll clouds forward anew."""

import dataclasses
import math
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
import optax
from jax import numpy as jnp

from pfbr.errors import FileError
from pfbr.flow.velocities.equivariant import EquivariantVelocity
from pfbr.inference.architectures import Architecture, build, to_json
from pfbr.inference.operator import Operator
from pfbr.inference.provenance import Provenance
from pfbr.io import containers
from pfbr.training.general.harvest import harvest
from pfbr.training.general.recipe import Recipe
from pfbr.training.objectives.kicks import Lesson, log_weights, loss
from pfbr.training.problems import store
from pfbr.training.problems.kinds import KINDS
from pfbr.training.problems.term import Kind
from pfbr.version import VERSION

TOGETHER = 20  # steps in one call: what lies between calls costs less then
CLIP = 1.0  # largest norm of a gradient


class Progress(NamedTuple):
    """All that the next round depends on, and what happened until now."""

    velocity: EquivariantVelocity
    average: EquivariantVelocity
    best: EquivariantVelocity
    optimiser: Any
    round: int
    steps: int
    seconds: float
    history: list[dict]


OPTIMISER = optax.chain(optax.clip_by_global_norm(CLIP), optax.scale_by_adam())


@partial(jax.jit, static_argnames=("kinds", "batch", "decay"))
def learn_steps(key, pools: dict[int, Lesson], velocity, average, optimiser, rate, *, kinds, batch: int, decay: float):
    def of_pool(velocity, key, pool: Lesson):
        chosen = jax.random.randint(key, (batch,), 0, pool.share.shape[0])
        some = jax.tree.map(lambda leaf: leaf[chosen], pool)
        each = jax.vmap(lambda lesson: loss(log_weights(kinds, velocity, lesson)))(some)
        return jnp.mean(jnp.where(jnp.isfinite(each), each, 5.0))

    def step(carry, key):
        velocity, average, optimiser = carry
        keys = jax.random.split(key, len(pools))
        mean = lambda v: sum(of_pool(v, *one) for one in zip(keys, pools.values(), strict=True)) / len(pools)
        value, gradient = jax.value_and_grad(mean)(velocity)
        gradient = jax.tree.map(lambda g: jnp.where(jnp.isfinite(g), g, 0), gradient)
        update, optimiser = OPTIMISER.update(gradient, optimiser)
        velocity = jax.tree.map(lambda w, u: w - rate * u, velocity, update)
        average = jax.tree.map(lambda a, w: decay * a + (1 - decay) * w, average, velocity)
        return (velocity, average, optimiser), value

    carry, values = jax.lax.scan(step, (velocity, average, optimiser), jax.random.split(key, TOGETHER))
    return *carry, jnp.mean(values)


def learn(
    recipe: Recipe,
    directory: str | os.PathLike,
    *,
    kinds: tuple[Kind, ...] = KINDS,
    resume: bool = False,
    tell: Callable[[str], None] = print,
) -> Operator:
    """The operator; problems and the checkpoint are kept in the directory. A kill loses at most one round."""
    store.ensure(
        directory,
        kinds,
        dims=recipe.dims,
        count=recipe.problems,
        num_particles=recipe.num_particles,
        seed=recipe.seed,
        tell=tell,
    )
    stored = {d: store.read(directory, kinds, d, num_particles=recipe.num_particles) for d in recipe.dims}
    checkpoint = Path(directory) / "learning.checkpoint"
    progress = _fresh(recipe)
    if resume:
        progress = _read(checkpoint, progress, recipe)
    for number in range(progress.round, recipe.rounds + 1):
        begun = time.monotonic()
        rng = np.random.default_rng((recipe.seed, number))
        pools, lost = harvest(rng, kinds, recipe, stored, progress.average)
        entry = {"round": number, "steps": progress.steps, "lost": float(np.mean(list(lost.values())))}
        entry |= {f"lost, d = {d}": round(share, 4) for d, share in lost.items()}
        if entry["lost"] <= min((e["lost"] for e in progress.history), default=math.inf):
            progress = progress._replace(best=progress.average)
        progress = progress._replace(history=[*progress.history, entry])
        tell(
            f"{entry}; {sum(len(pool.share) for pool in pools.values())} steps harvested in "
            f"{time.monotonic() - begun:.0f} s"
        )
        if number < recipe.rounds:
            progress, value = _round(recipe, kinds, progress, pools)
            tell(f"round {number + 1} of {recipe.rounds}: {progress.steps} steps, loss {value:.3f}")
        progress = progress._replace(round=number + 1)
        _write(checkpoint, progress, recipe)
    return as_operator(progress, recipe, kinds)


def _round(
    recipe: Recipe, kinds: tuple[Kind, ...], progress: Progress, pools: dict[int, Lesson]
) -> tuple[Progress, float]:
    """Learn until this round's part of the time is over; what is harvested between rounds does not count."""
    budget = 60 * recipe.minutes
    begun = time.monotonic()
    until = begun + (budget - progress.seconds) / (recipe.rounds - progress.round)
    velocity, average, optimiser, steps = progress.velocity, progress.average, progress.optimiser, progress.steps
    values: list[float] = []
    while time.monotonic() < until or not values:
        part = min((progress.seconds + time.monotonic() - begun) / budget, 1.0)
        rate = recipe.learning_rate * (0.5 * (1 + math.cos(math.pi * part)) + 0.01)
        key = jax.random.fold_in(jax.random.key(recipe.seed), steps)
        velocity, average, optimiser, value = learn_steps(
            key, pools, velocity, average, optimiser, rate, kinds=kinds, batch=recipe.batch, decay=recipe.average
        )
        steps = steps + TOGETHER
        values.append(float(value))
    learned = progress._replace(velocity=velocity, average=average, optimiser=optimiser, steps=steps)
    return learned._replace(seconds=progress.seconds + time.monotonic() - begun), float(np.mean(values[-20:]))


def architecture(recipe: Recipe) -> Architecture:
    return Architecture("equivariant", None, None, {"solver": "closed-form", "steps": recipe.steps})


def as_operator(progress: Progress, recipe: Recipe, kinds: tuple[Kind, ...]) -> Operator:
    plan = architecture(recipe)
    document = {
        "architecture": to_json(plan),
        "model": "random problems of these kinds: " + ", ".join(kind.__name__ for kind in kinds),
        "settings": _table(recipe),
        "seed": [recipe.seed],
        "version": VERSION,
        "history": progress.history,
        "steps": progress.steps,
        "seconds": round(progress.seconds, 1),
    }
    operator = eqx.tree_at(lambda o: o.velocity, build(jax.random.key(0), plan), progress.best)
    return dataclasses.replace(operator, provenance=Provenance(document))


def _fresh(recipe: Recipe) -> Progress:
    velocity = build(jax.random.key(recipe.seed), architecture(recipe)).velocity
    assert isinstance(velocity, EquivariantVelocity)
    return Progress(velocity, velocity, velocity, OPTIMISER.init(velocity), 0, 0, 0.0, [])


def _table(recipe: Recipe) -> dict[str, Any]:
    return dict(dataclasses.asdict(recipe), dims=list(recipe.dims))


def _write(path: Path, progress: Progress, recipe: Recipe) -> None:
    trees, told = progress[:4], {name: getattr(progress, name) for name in ("round", "steps", "seconds", "history")}
    containers.write(path, "checkpoint", dict(told, recipe=_table(recipe)), containers.named_leaves(trees))


def _read(path: Path, fresh: Progress, recipe: Recipe) -> Progress:
    header, arrays = containers.read(path, "checkpoint")
    if header.get("recipe") != _table(recipe):
        raise FileError(f"{path} is the checkpoint of another recipe. Resume with the same one, or start anew.")
    trees = containers.filled(fresh[:4], arrays, path)
    return Progress(*trees, header["round"], header["steps"], header["seconds"], header["history"])
