"""The default method against the truth over streams, and a bootstrap filter beside it.

    python -m benchmarks.streams.run ranges-much growth --seed 5000 --streams 25 --bootstrap 20000 --out records.jsonl

Error of a stream: Mahalanobis distance of the mean from the true one over √d, root mean square over steps. For Lorenz
systems: root mean square error of the mean as an estimate of the state, averaged over the steps after the first 40.
Evidence: log evidence of the whole stream minus the true one. Spread: standard deviations over the true ones. Coverage:
the share of states inside central 95 % intervals, over steps and coordinates. A step is right below 0.15 sd and wrong
above 0.5. CPU ms a step are without compilation.
"""

import argparse
import time

import jax
import numpy as np

from benchmarks import json_lines
from benchmarks.streams.brute_force import distances
from benchmarks.streams.catalogue import PROBLEMS
from benchmarks.streams.lorenz import BURN_IN
from benchmarks.streams.problem import Problem, Simulated, Truth
from pfbr.inference.method import Recorded, record
from pfbr.inference.registry import as_method

RIGHT, WRONG = 0.15, 0.5  # errors of the mean
INTERVAL = (0.025, 0.975)


def intervals(points: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weighted quantiles (T, d) of points (T, n, d)."""
    order = np.argsort(points, axis=1)
    below = np.cumsum(np.take_along_axis(weights[:, :, None], order, axis=1), axis=1)
    ends = []
    for share in INTERVAL:
        at = np.argmax(below >= share * below[:, -1:], axis=1)[:, None]
        ends.append(np.take_along_axis(points, np.take_along_axis(order, at, axis=1), axis=1)[:, 0])
    return ends[0], ends[1]


def judge(said: Recorded, simulated: Simulated, truth: Truth | None) -> dict[str, float]:
    """Figures of one stream; NaN where there is nothing to tell."""
    points = np.asarray(said.particles.points, float)
    weights = np.exp(np.asarray(said.particles.log_weights, float))
    weights /= weights.sum(axis=1, keepdims=True)
    means = np.einsum("tn,tnd->td", weights, points)
    low, high = intervals(points, weights)
    inside = (simulated.states >= low) & (simulated.states <= high)
    flagged = None if said.info.flagged is None else np.asarray(said.info.flagged, bool)
    figures = {"coverage": np.mean(inside), "flagged": np.nan if flagged is None else np.mean(flagged)}
    if truth is None:
        burn_in = BURN_IN if len(means) > BURN_IN else 0
        return figures | {"error": np.mean(np.sqrt(np.mean((means - simulated.states) ** 2, axis=1))[burn_in:])}
    error = distances(means, truth)
    std = np.sqrt(np.einsum("tn,tnd->td", weights, (points - means[:, None]) ** 2))
    true_std = np.sqrt(np.diagonal(truth.covariances.astype(float), axis1=1, axis2=2))
    right, wrong = error < RIGHT, ~(error < WRONG)
    figures |= {
        "error": np.sqrt(np.mean(error**2)),
        "evidence": float(said.info.log_evidence[-1]) - np.sum(truth.log_predictives, dtype=float),
        "spread": np.median(std / true_std),
        "right": np.sum(right),
        "wrong": np.sum(wrong),
        "error of the truth": truth.error,
    }
    if flagged is not None:
        figures |= {"right but flagged": np.sum(right & flagged), "wrong and not flagged": np.sum(wrong & ~flagged)}
    return figures


def measure(problem: Problem, name: str, *, seed: int, streams: int, particles: int, steps: int | None) -> dict:
    """One method over streams with consecutive seeds."""
    method, compiled, figures = None, None, []
    for one in range(seed, seed + streams):
        model, simulated, truth = problem.model_of(one), problem.simulate(one), problem.truth(one)
        if steps is not None:
            simulated, truth = simulated.first(steps), None if truth is None else truth.first(steps)
        stream, key = simulated.stream, jax.random.key(one)
        if compiled is None:
            method = as_method(name, model)
            compiled = record.lower(key, method, model, stream, particles).compile()
        begun = time.process_time()
        said = jax.block_until_ready(compiled(key, method, model, stream, particles))
        seconds = time.process_time() - begun
        figures.append(judge(said, simulated, truth) | {"ms": 1e3 * seconds / len(simulated.states)})
    each = {name: np.array([one[name] for one in figures], float) for name in figures[0]}
    error = each["error"]
    result = {
        "problem": problem.name,
        "method": name,
        "particles": particles,
        "seed": seed,
        "streams": streams,
        "steps": len(simulated.states),
        "error": error.mean(),
        "se": error.std(ddof=1) / np.sqrt(streams) if streams > 1 else np.nan,
        "median": np.median(error),
        "worst": error.max(),
        "coverage": each["coverage"].mean(),
        "flagged": each["flagged"].mean(),
        "ms": np.median(each["ms"]),
    }
    if "evidence" in each:
        evidence = each["evidence"]
        result |= {
            "evidence median": np.median(evidence),
            "evidence worst": evidence[np.argmax(np.abs(evidence))],
            "spread": np.median(each["spread"]),
            "error of the truth": each["error of the truth"].mean(),
        }
    for count in ("right", "right but flagged", "wrong", "wrong and not flagged"):
        if count in each:
            result[count] = int(each[count].sum())
    return {name: float(value) if isinstance(value, np.floating) else value for name, value in result.items()}


def shown(r: dict) -> str:
    text = (
        f"{r['problem']} {r['method']} n={r['particles']}, {r['streams']} streams of {r['steps']}, seed {r['seed']}:\n"
        f"    error {r['error']:.3f} ± {r['se']:.3f}, median {r['median']:.3f}, worst {r['worst']:.3f}; coverage "
        f"{100 * r['coverage']:.1f} %; {r['ms']:.2f} ms a step"
    )
    if "spread" in r:
        text += (
            f"\n    evidence median {r['evidence median']:+.2f}, worst {r['evidence worst']:+.2f}; spread "
            f"{r['spread']:.2f}; truth to {r['error of the truth']:.3f} sd"
        )
    if "right but flagged" in r:
        text += (
            f"; flagged {r['right but flagged']} of {r['right']} right steps, not flagged "
            f"{r['wrong and not flagged']} of {r['wrong']} wrong"
        )
    elif not np.isnan(r["flagged"]):
        text += f"; {100 * r['flagged']:.1f} % of steps flagged"
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", choices=PROBLEMS, metavar="NAMES", help=", ".join(PROBLEMS))
    parser.add_argument("--seed", type=int, default=1000, help="of the first stream")
    parser.add_argument("--streams", type=int, default=25)
    parser.add_argument("--steps", type=int, help="only the first of each stream")
    parser.add_argument("--particles", type=int, default=256)
    parser.add_argument("--bootstrap", type=int, default=0, help="particles of a bootstrap filter; 0: none")
    parser.add_argument("--method", default="auto")
    parser.add_argument("--out", help="a file of JSON lines, added to")
    args = parser.parse_args()
    for name in args.names:
        for method, particles in ((args.method, args.particles), ("smc", args.bootstrap)):
            if particles == 0:
                continue
            asked = {"seed": args.seed, "streams": args.streams, "particles": particles, "steps": args.steps}
            result = measure(PROBLEMS[name], method, **asked)
            print(shown(result), flush=True)
            json_lines.add(args.out, result)
        jax.clear_caches()


if __name__ == "__main__":
    main()
