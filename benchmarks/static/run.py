"""The default method against the truth, over keys.

    python -m benchmarks.static.run yearly-3 diabetes-8 --seed 5000 --keys 25 --out records.jsonl

For each stage: the error of the mean (Mahalanobis over √d) over that of as many exact draws, root mean square and worst
key; the smallest and largest ratio of standard deviations, root mean square over keys; standard deviation over keys and
mean error of the log evidence; flags. For each problem: rejuvenations, and CPU seconds a stream without compilation.
"""

import argparse
import json
import time
from dataclasses import dataclass

import jax
import numpy as np

from benchmarks.static.catalogue import PROBLEMS
from benchmarks.static.problem import Problem, Truth
from pfbr.inference.info import Move
from pfbr.inference.method import Method, record
from pfbr.inference.registry import as_method

RIGHT, WRONG = 0.15, 0.5  # errors of the mean
SETTLED = 50  # rows, beyond which rejuvenations are counted


def errors(points, log_weights, mean, cov) -> tuple[float, np.ndarray]:
    """Mahalanobis over √d; ratio of standard deviations per coordinate."""
    x, p = np.asarray(points, float), np.exp(np.asarray(log_weights, float))
    p = p / p.sum()
    ours, sd = p @ x, np.sqrt(np.diag(cov))
    off = (ours - mean) / sd
    far = off @ np.linalg.solve(cov / sd[:, None] / sd, off)
    return float(np.sqrt(far / len(mean))), np.sqrt(p @ (x - ours) ** 2) / sd


@dataclass(frozen=True)
class Runs:
    """What came out, by key; at the truth's stages, but for flags and moves, which are of every row."""

    error: np.ndarray  # (keys, stages)
    spread: np.ndarray  # (keys, stages, d)
    evidence: np.ndarray  # (keys, stages)
    flagged: np.ndarray  # (keys, rows)
    moves: np.ndarray  # (keys, rows)
    seconds: np.ndarray  # (keys,) of CPU
    compilation: float
    details: dict[str, np.ndarray]  # (keys, rows) each


def run_keys(problem: Problem, truth: Truth, method: Method, *, keys: int, particles: int) -> Runs:
    at = truth.stages - 1
    stream = problem.stream
    begun = time.process_time()
    compiled = record.lower(jax.random.key(0), method, problem.model, stream, particles).compile()
    compilation = time.process_time() - begun
    error, spread, evidence, flagged, moves, seconds, details = [], [], [], [], [], [], []
    for k in range(keys):
        key = jax.random.key(problem.seed * 1000 + k)
        begun = time.process_time()
        said = jax.block_until_ready(compiled(key, method, problem.model, stream, particles))
        seconds.append(time.process_time() - begun)
        points, log_weights = said.particles.points[at], said.particles.log_weights[at]
        each = [errors(*four) for four in zip(points, log_weights, truth.mean, truth.cov, strict=True)]
        error.append([e for e, _ in each])
        spread.append([s for _, s in each])
        told = said.info.log_evidence  # a rival may have none
        evidence.append(np.full(len(at), np.nan) if told is None else np.asarray(told, float)[at])
        never = np.zeros(len(problem.observations), bool)  # a rival that flags nothing
        flagged.append(never if said.info.flagged is None else np.asarray(said.info.flagged))
        moves.append(np.asarray(said.info.move))
        details.append(jax.tree.map(np.asarray, said.info.details))
    stacked = {name: np.stack([d[name] for d in details]) for name in details[0]}
    parts = (np.array(part) for part in (error, spread, evidence, flagged, moves, seconds))
    return Runs(*parts, compilation, stacked)


def measure(problem: Problem, method_name: str | Method, *, keys: int, particles: int, history: int) -> list[dict]:
    """One record for each stage."""
    truth = problem.truth()
    at = truth.stages - 1
    total = len(problem.observations)
    method = as_method(method_name, problem.model, history=history, rows=total)
    runs = run_keys(problem, truth, method, keys=keys, particles=particles)
    error, spread, evidence, moves = runs.error, runs.spread, runs.evidence, runs.moves
    steps_flagged, flagged = runs.flagged, runs.flagged[:, at]
    exact = 1 / np.sqrt(particles)
    typical = np.sqrt(np.mean(spread**2, axis=0))
    right, wrong = error < RIGHT, ~(error < WRONG)
    whole = {
        "problem": problem.name,
        "d": problem.model.dim,
        "seed": problem.seed,
        "method": str(method_name) if isinstance(method_name, str) else type(method_name).__name__,
        "keys": keys,
        "particles": particles,
        "history": history,
        "rows": total,
        "rejuvenations after row 50": float(np.mean(np.sum(moves[:, SETTLED:] != Move.WEIGHED, axis=1))),
        "rejuvenations before": float(np.mean(np.sum(moves[:, :SETTLED] != Move.WEIGHED, axis=1))),
        "most rejuvenations after row 50": 1.3 * problem.model.dim * float(np.log(max(total, SETTLED) / SETTLED)),
        "steps flagged": float(np.mean(steps_flagged)),
        "CPU seconds": float(np.mean(runs.seconds)),
        "worst CPU seconds": float(np.max(runs.seconds)),
        "CPU seconds of compilation": runs.compilation,
    }
    records = []
    for i, stage in enumerate(truth.stages):
        records.append(
            whole
            | {
                "stage": int(stage),
                "error of the truth": float(truth.error[i]),
                "error": float(np.sqrt(np.mean(error[:, i] ** 2)) / exact),
                "worst key": float(error[:, i].max() / exact),
                "spread": [float(typical[i].min()), float(typical[i].max())],
                "narrowest": problem.unknowns[int(typical[i].argmin())],
                "evidence sd": float(np.std(evidence[:, i], ddof=1)) if keys > 1 else 0.0,
                "evidence off": float(np.mean(evidence[:, i]) - truth.log_evidence[i]),
                "right": int(right[:, i].sum()),
                "right but flagged": int((right & flagged)[:, i].sum()),
                "wrong": int(wrong[:, i].sum()),
                "wrong and not flagged": int((wrong & ~flagged)[:, i].sum()),
            }
        )
    return records


def show(records: list[dict]) -> None:
    one = records[0]
    print(
        f"{one['problem']} d={one['d']} T={one['rows']} seed={one['seed']} keys={one['keys']} n={one['particles']}: "
        f"{one['CPU seconds']:.2f} CPU s a stream (worst {one['worst CPU seconds']:.2f}; compilation "
        f"{one['CPU seconds of compilation']:.0f}), rejuvenations {one['rejuvenations before']:.1f} + "
        f"{one['rejuvenations after row 50']:.1f} (at most {one['most rejuvenations after row 50']:.1f} wanted), "
        f"{100 * one['steps flagged']:.1f} % of steps flagged"
    )
    for r in records:
        print(
            f"    row {r['stage']:4d}: error {r['error']:5.2f} (worst key {r['worst key']:5.2f}), spread "
            f"{r['spread'][0]:.2f} {r['narrowest']} – {r['spread'][1]:.2f}, evidence sd {r['evidence sd']:.2f} off "
            f"{r['evidence off']:+.2f}, flagged {r['right but flagged']} of {r['right']} right, not flagged "
            f"{r['wrong and not flagged']} of {r['wrong']} wrong; truth to {r['error of the truth']:.3f} sd",
            flush=True,
        )


def summary(records: list[dict]) -> str:
    ratios = np.array([r["error"] for r in records])
    add = lambda name: sum(r[name] for r in records)
    fair = sum(r["spread"][0] > 0.85 and r["spread"][1] < 1.15 for r in records)
    return (
        f"{len(ratios)} cases: median {np.median(ratios):.2f}, worst {ratios.max():.2f}, above 1.8: "
        f"{int(np.sum(~(ratios <= 1.8)))}, spread within 15 %: {fair}; flagged {add('right but flagged')} of "
        f"{add('right')} right, not flagged {add('wrong and not flagged')} of {add('wrong')} wrong"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", help=", ".join(PROBLEMS))
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--keys", type=int, default=25)
    parser.add_argument("--particles", type=int, default=256)
    parser.add_argument("--history", type=int, default=4096)
    parser.add_argument("--method", default="auto")
    parser.add_argument("--out", help="a file of JSON lines, added to")
    args = parser.parse_args()
    all_records = []
    for name in args.names:
        problem = PROBLEMS[name](args.seed)
        records = measure(problem, args.method, keys=args.keys, particles=args.particles, history=args.history)
        show(records)
        all_records += records
        jax.clear_caches()
        if args.out:
            with open(args.out, "a") as file:
                file.writelines(json.dumps(r) + "\n" for r in records)
    print(summary(all_records))


if __name__ == "__main__":
    main()
