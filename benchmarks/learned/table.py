"""One step from exact draws: the share of the effective sample size that is lost, kind by kind, by weighing, the affine
flow, the affine map to the Gaussian that scores of the target describe, and the general map before and after training.

Weighing and the affine flow are told nothing of the density before the observation; the others know it, with its
slopes, at the particles.
"""

import json
import time
from functools import partial
from pathlib import Path

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.flow.transport.known import Known
from pfbr.flow.transport.network import untrained
from pfbr.flow.transport.transport import Transport
from pfbr.inference.adaptive.filter.affine_flow import affine_flow
from pfbr.inference.adaptive.static.affine import fit_gaussian, law_of
from pfbr.particles.particles import ess_share
from pfbr.training.problems.problem import HEAVY, LUMPS, NORMAL
from pfbr.training.problems.store import make_clouds

PRIORS = {NORMAL: "normal", LUMPS: "lumps", HEAVY: "heavy tails"}
METHODS = ("weighing", "affine", "by scores", "untrained", "learned")
MOST = 1024  # particles that are drawn; fewer are taken from these


@partial(jax.jit, static_argnames=("kinds", "method"))
def ess_left(kinds, problem, points, transport, method):
    new = jax.vmap(jax.value_and_grad(lambda x: problem.log_new(kinds, x)))
    before = jax.vmap(jax.value_and_grad(lambda x: problem.log_before(kinds, x)))
    weights = jnp.full(len(points), 1 / len(points))
    (value, score), (gained, new_score) = before(points), new(points)
    if method == "weighing":
        return ess_share(gained)
    if method == "affine":
        moved = affine_flow(points, weights, new)
        places, log_det = moved.points, moved.log_det
    elif method == "by scores":
        law = law_of(points, score, jnp.log(weights))
        u = law.whiten(points)
        fit = fit_gaussian(u, law.covectors(score + new_score), jax.nn.softmax(gained))
        values, vectors = jnp.linalg.eigh(fit.precision)
        places = law.restore(u @ ((vectors / jnp.sqrt(values)) @ vectors.T) + fit.mean)
        log_det = -0.5 * jnp.sum(jnp.log(values))
    else:
        moved = transport(points, weights, Known(value, score), new)
        places, log_det = moved.points, moved.log_det
    return ess_share(before(places)[0] + new(places)[0] - value + log_det)


def table(kinds, transport, *, dims, particles, problems, seed, out=None):
    """A line for each kind and dimension; returns all of them."""
    rows, fresh = [], Transport(untrained(jax.random.key(0)))
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
                        weights = fresh if method == "untrained" else transport
                        left = float(ess_left(kinds, problem, points, weights, method))
                        seconds.append(time.process_time() - started)
                        lost.append(1 - left)
                    row[method] = round(float(np.mean(lost)), 4)
                    row[f"{method}, each"] = [round(one, 4) for one in lost]
                    row[f"{method}, ms"] = round(1e3 * float(np.median(seconds)), 2)
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
        for method in METHODS
    }
    if not each["affine"]:
        return f"{title}: none"
    mean = {method: np.mean(lost) for method, lost in each.items()}
    told = ", ".join(f"{method} {value:.3f}" for method, value in mean.items())
    error = np.std(each["learned"], ddof=1) / len(each["learned"]) ** 0.5
    over = mean["learned"] / mean["affine"]
    return f"{title} ({len(each['affine'])} problems): {told} ± {error:.3f}; over affine: {over:.2f}"
