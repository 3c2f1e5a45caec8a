"""One step from exact draws: the share of the effective sample size that weighing, the affine flow and the general
operator lose, kind by kind."""

import json
import time
from functools import partial
from pathlib import Path

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.inference.adaptive.filter.affine_flow import affine_flow
from pfbr.training.general.rollout import ess_share, roll
from pfbr.training.problems.store import make_clouds

MOST = 1024  # particles that are drawn; fewer are taken from these


@partial(jax.jit, static_argnames=("kinds", "steps", "method"))
def ess_left(kinds, problem, points, velocity, steps, method):
    new = jax.vmap(jax.value_and_grad(lambda x: problem.log_new(kinds, x)))
    before = jax.vmap(lambda x: problem.log_before(kinds, x))
    if method == "weighing":
        return ess_share(new(points)[0])
    if method == "affine":
        weights = jnp.full(len(points), 1 / len(points))
        moved = affine_flow(points, weights, new)
        target = before(moved.points) + new(moved.points)[0]
        return ess_share(target - before(points) + moved.log_det)
    return ess_share(roll(velocity, kinds, problem, points, steps).log_weights[-1])


def table(kinds, velocity, *, dims, particles, problems, seed, steps, out=None):
    """A line for each kind and dimension; returns all of them."""
    rows = []
    everything = jnp.arange(len(kinds))
    for d in dims:
        for number, kind in enumerate(kinds):
            key = jax.random.fold_in(jax.random.key(seed), 100 * d + number)
            clouds = make_clouds(
                jax.random.split(key, problems),
                d=d,
                kinds=kinds,
                chosen=jnp.array([number]),
                old=everything,
                num=MOST,
                shares=(0.0,),
            )
            for num in particles:
                row = {"d": d, "kind": kind.__name__, "particles": num, "problems": problems, "seed": seed}
                for method in ("weighing", "affine", "learned"):
                    lost, seconds = [], []
                    for i in range(problems):
                        problem = jax.tree.map(lambda leaf, i=i: leaf[i], clouds.problem)
                        points = clouds.points[i, 0, :: MOST // num]
                        started = time.process_time()
                        left = float(ess_left(kinds, problem, points, velocity, steps, method))
                        seconds.append(time.process_time() - started)
                        lost.append(1 - left)
                    row[method] = round(float(np.mean(lost)), 4)
                    row[f"{method}, worst"] = round(float(np.max(lost)), 4)
                    row[f"{method}, ms"] = round(1e3 * float(np.median(seconds)), 2)
                rows.append(row)
                print(json.dumps(row), flush=True)
                if out is not None:
                    with Path(out).open("a") as file:
                        file.write(json.dumps(row) + "\n")
    return rows


def summary(rows) -> str:
    """Means over kinds, and where the learned one loses more than the affine flow."""
    lines = []
    for num in sorted({row["particles"] for row in rows}):
        for d in (*sorted({row["d"] for row in rows}), None):
            some = [row for row in rows if row["particles"] == num and d in (row["d"], None)]
            mean = {name: np.mean([row[name] for row in some]) for name in ("weighing", "affine", "learned")}
            where = "all" if d is None else f"d = {d}"
            told = ", ".join(f"{name} {value:.3f}" for name, value in mean.items())
            lines.append(f"{num} particles, {where}: {told}; ratio {mean['learned'] / mean['affine']:.2f}")
        for kind in dict.fromkeys(row["kind"] for row in rows):
            some = [row for row in rows if row["particles"] == num and row["kind"] == kind]
            affine, learned = (np.mean([row[name] for row in some]) for name in ("affine", "learned"))
            lines.append(f"    {kind}: affine {affine:.3f}, learned {learned:.3f}, ratio {learned / affine:.2f}")
    worse = [row for row in rows if row["learned"] > row["affine"]]
    lines.append(f"worse than the affine flow in {len(worse)} of {len(rows)} cells")
    worst = max(rows, key=lambda row: row["learned"])
    lines.append(f"worst: {worst['kind']}, d = {worst['d']}, {worst['particles']} particles: {worst['learned']:.3f}")
    return "\n".join(lines)
