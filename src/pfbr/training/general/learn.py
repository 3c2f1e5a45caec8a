"""Learn one map for every model: random problems in several dimensions, and how even their weights become."""

import dataclasses
import math
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import optax
from jax import numpy as jnp

from pfbr.errors import FileError
from pfbr.flow.transport.network import untrained
from pfbr.flow.transport.transport import Transport
from pfbr.io import containers
from pfbr.particles.particles import ess_share
from pfbr.training.general.lesson import lesson_weights, loss
from pfbr.training.general.recipe import Recipe
from pfbr.training.problems import store
from pfbr.training.problems.clouds import SHARES, Clouds
from pfbr.training.problems.kinds import KINDS
from pfbr.training.problems.term import Kind

CLIP = 1.0  # largest norm of a gradient
OPTIMISER = optax.chain(optax.clip_by_global_norm(CLIP), optax.scale_by_adam())


class Progress(NamedTuple):
    """All that the next step depends on, and what happened until now."""

    transport: Transport
    average: Transport
    best: Transport
    optimiser: Any
    steps: int
    seconds: float
    history: list[dict]


class Learned(NamedTuple):
    """The best weights, and how they were found: the header of their file."""

    transport: Transport
    document: dict[str, Any]


@partial(jax.jit, static_argnames=("kinds",))
def gradient_of(transport: Transport, kinds: tuple[Kind, ...], clouds: Clouds, late, by_map):
    """Mean loss and gradient over some problems, one after the other: only the kinds at hand are then computed. A
    problem without a finite gradient is left out."""
    shares = jnp.asarray(SHARES, clouds.points.dtype)

    def add(total, given):
        cloud, late, by_map = given
        one = lambda t: loss(lesson_weights(t, kinds, cloud.problem, cloud.points, late, shares, by_map))
        value, gradient = jax.value_and_grad(one)(transport)
        norm = optax.global_norm(gradient)
        fine = jnp.isfinite(value) & jnp.isfinite(norm)
        scale = jnp.where(fine, jnp.minimum(1, CLIP / (norm + 1e-9)), 0)
        gradient = jax.tree.map(lambda g: jnp.where(fine, scale * g, 0), gradient)
        return jax.tree.map(jnp.add, total, (jnp.where(fine, value, 0), gradient, fine.astype(value.dtype))), None

    nothing = jnp.zeros((), clouds.points.dtype)
    start = nothing, jax.tree.map(jnp.zeros_like, transport), nothing
    (value, gradient, count), _ = jax.lax.scan(add, start, (clouds, late, by_map))
    share = 1 / jnp.maximum(count, 1)
    return share * value, jax.tree.map(lambda g: share * g, gradient), len(late) - count


@partial(jax.jit, static_argnames=("kinds",))
def lost(transport: Transport, kinds: tuple[Kind, ...], clouds: Clouds):
    """The share of the ESS that one step from exact draws loses, for each problem."""
    shares = jnp.asarray(SHARES, clouds.points.dtype)
    one = lambda cloud: lesson_weights(
        transport, kinds, cloud.problem, cloud.points, jnp.asarray(0), shares, jnp.asarray(False)
    )
    return jax.lax.map(lambda cloud: 1 - ess_share(one(cloud)), clouds)


@jax.jit
def apply(transport, average, optimiser, gradient, rate, decay):
    update, optimiser = OPTIMISER.update(gradient, optimiser)
    transport = jax.tree.map(lambda w, u: w - rate * u, transport, update)
    average = jax.tree.map(lambda a, w: decay * a + (1 - decay) * w, average, transport)
    return transport, average, optimiser


def learn(
    recipe: Recipe,
    directory: str | os.PathLike,
    *,
    kinds: tuple[Kind, ...] = KINDS,
    resume: bool = False,
    tell: Callable[[str], None] = print,
) -> Learned:
    """The best weights; problems and the checkpoint are kept in the directory. A kill loses `judge_every` steps."""
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
    fresh = Transport(untrained(jax.random.key(recipe.seed)))
    progress = Progress(fresh, fresh, fresh, OPTIMISER.init(fresh), 0, 0.0, [])
    if resume:
        progress = _read(checkpoint, progress, recipe)
    else:
        progress = _judged(recipe, kinds, stored, progress, math.nan, tell)
    begun, values, skipped = time.monotonic() - progress.seconds, [], 0
    while (part := progress.seconds / (60 * recipe.minutes)) < 1:
        value, dropped, progress = _step(recipe, kinds, stored, progress, part)
        values.append(value)
        skipped += dropped
        progress = progress._replace(seconds=time.monotonic() - begun)
        if progress.steps % recipe.judge_every == 0 or progress.seconds >= 60 * recipe.minutes:
            tell(f"{progress.steps} steps, loss {np.mean(values):.4f}; {skipped} without a finite gradient")
            progress = _judged(recipe, kinds, stored, progress, float(np.mean(values)), tell)
            values, skipped = [], 0
            begun = time.monotonic() - progress.seconds  # what judging takes does not count
            _write(checkpoint, progress, recipe)
    document = {
        "kinds": [kind.__name__ for kind in kinds],
        "recipe": _table(recipe),
        "history": progress.history,
        "steps": progress.steps,
        "seconds": round(progress.seconds, 1),
    }
    return Learned(progress.best, document)


def _step(recipe: Recipe, kinds, stored: dict[int, Clouds], progress: Progress, part: float):
    rng = np.random.default_rng((recipe.seed, progress.steps))
    rate = recipe.learning_rate * (0.5 * (1 + math.cos(math.pi * part)) + 0.01)
    found = []
    for clouds in stored.values():
        chosen = rng.choice(len(clouds.points) - recipe.held, recipe.batch, replace=False)
        late = np.where(rng.random(recipe.batch) < recipe.late, rng.integers(1, len(SHARES) - 1, recipe.batch), 0)
        by_map = rng.random(recipe.batch) < recipe.moved
        some = jax.tree.map(lambda leaf: leaf[chosen], clouds)  # noqa: B023
        found.append(gradient_of(progress.transport, kinds, some, late, by_map))
    value = float(np.mean([float(one[0]) for one in found]))
    gradient = jax.tree.map(lambda *leaves: sum(leaves) / len(leaves), *[one[1] for one in found])
    transport, average, optimiser = apply(
        progress.transport, progress.average, progress.optimiser, gradient, rate, recipe.average
    )
    dropped = int(sum(float(one[2]) for one in found))
    moved = progress._replace(transport=transport, average=average, optimiser=optimiser, steps=progress.steps + 1)
    return value, dropped, moved


def _judged(recipe: Recipe, kinds, stored: dict[int, Clouds], progress: Progress, value: float, tell) -> Progress:
    entry: dict[str, Any] = {"steps": progress.steps, "seconds": round(progress.seconds, 1)}
    for d, clouds in stored.items():
        held = jax.tree.map(lambda leaf: leaf[-recipe.held :], clouds)
        entry[f"lost, d = {d}"] = round(float(jnp.mean(lost(progress.average, kinds, held))), 4)
    entry["lost"] = round(float(np.mean([entry[f"lost, d = {d}"] for d in stored])), 5)
    if math.isfinite(value):
        entry["loss"] = round(value, 5)
    tell(str(entry))
    if entry["lost"] <= min((e["lost"] for e in progress.history), default=math.inf):
        progress = progress._replace(best=progress.average)
    return progress._replace(history=[*progress.history, entry])


def _table(recipe: Recipe) -> dict[str, Any]:
    return dict(dataclasses.asdict(recipe), dims=list(recipe.dims))


def _write(path: Path, progress: Progress, recipe: Recipe) -> None:
    told = {name: getattr(progress, name) for name in ("steps", "seconds", "history")}
    containers.write(path, "checkpoint", dict(told, recipe=_table(recipe)), containers.named_leaves(progress[:4]))


def _read(path: Path, fresh: Progress, recipe: Recipe) -> Progress:
    header, arrays = containers.read(path, "checkpoint")
    if header.get("recipe") != _table(recipe):
        raise FileError(f"{path} is the checkpoint of another recipe. Resume with the same one, or start anew.")
    trees = containers.filled(fresh[:4], arrays, path)
    return Progress(*trees, header["steps"], header["seconds"], header["history"])
