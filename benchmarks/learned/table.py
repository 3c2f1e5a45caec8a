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
from pfbr.training.problems.problem import HEAVY, LUMPS, NORMAL
from pfbr.training.problems.store import make_clouds

PRIORS = {NORMAL: "normal", LUMPS: "lumps", HEAVY: "heavy tails"}
METHODS = ("weighing", "affine", "learned")
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
                row["priors"] = [PRIORS[int(shape)] for shape in clouds.problem.prior.shape]
                for method in METHODS:
                    lost, seconds = [], []
                    for i in range(problems):
                        problem = jax.tree.map(lambda leaf, i=i: leaf[i], clouds.problem)
                        points = clouds.points[i, 0, :: MOST // num]
                        started = time.process_time()
                        left = float(ess_left(kinds, problem, points, velocity, steps, method))
                        seconds.append(time.process_time() - started)
                        lost.append(1 - left)
                    row[method] = round(float(np.mean(lost)), 4)
                    row[f"{method}, each"] = [round(one, 4) for one in lost]
                    row[f"{method}, ms"] = round(1e3 * float(np.median(seconds)), 2)
                # whoever has both flows takes the one whose weights are more even
                pairs = zip(row["affine, each"], row["learned, each"], strict=True)
                row["either, each"] = [min(pair) for pair in pairs]
                row["either"] = round(float(np.mean(row["either, each"])), 4)
                rows.append(row)
                print({name: value for name, value in row.items() if not isinstance(value, list)}, flush=True)
                if out is not None:
                    with Path(out).open("a") as file:
                        file.write(json.dumps(row) + "\n")
    return rows


def summary(rows) -> str:
    """Means over dimensions, kinds and priors; where the learned one loses more than the affine flow; and the worst."""
    lines = []
    for num in sorted({row["particles"] for row in rows}):
        here = [row for row in rows if row["particles"] == num]
        for name in ("d", "kind"):
            for value in dict.fromkeys(row[name] for row in here):
                lines.append(_line(f"{num} particles, {name} {value}", [row for row in here if row[name] == value]))
        for prior in PRIORS.values():
            lines.append(_line(f"{num} particles, prior with {prior}", here, prior))
        lines.append(_line(f"{num} particles, all", here))
        worse = [row for row in here if row["learned"] > row["affine"]]
        lines.append(f"{num} particles: more than the affine flow in {len(worse)} of {len(here)} cells")
        worst = max(here, key=lambda row: row["learned"])
        lines.append(f"{num} particles, worst cell: {worst['kind']}, d = {worst['d']}, {worst['learned']:.3f}")
    return "\n".join(lines)


def _line(title: str, rows, prior: str | None = None) -> str:
    each = {
        method: [
            lost
            for row in rows
            for lost, shape in zip(row[f"{method}, each"], row["priors"], strict=True)
            if prior in (None, shape)
        ]
        for method in (*METHODS, "either")
    }
    if not each["affine"]:
        return f"{title}: none"
    mean = {method: np.mean(lost) for method, lost in each.items()}
    learned, either = (mean[method] / mean["affine"] for method in ("learned", "either"))
    told = ", ".join(f"{method} {value:.3f}" for method, value in mean.items())
    return f"{title} ({len(each['affine'])} problems): {told}; over affine: {learned:.2f}, {either:.2f}"
