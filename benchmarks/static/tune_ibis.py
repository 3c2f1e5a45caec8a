"""The strongest rival for static unknowns, tuned on development seeds: IBIS with tempering, over moves and threshold.

    python -m benchmarks.static.tune_ibis --out records.jsonl
    python -m benchmarks.static.tune_ibis --test 5010 --moves 40 --threshold 0.5 --particles 256

Without `--test`: every setting on development problems (seed 1000, 10 keys each). Its score is the root mean square
over all cases of the error over that of 256 exact draws; and the CPU seconds of a stream, so that a setting can be
chosen that has our time. With `--test`: one setting on a test seed.
"""

import argparse

import jax
import numpy as np

from benchmarks import json_lines
from benchmarks.static.catalogue import PROBLEMS
from benchmarks.static.run import measure, show
from pfbr.baselines import IBIS

DEVELOPMENT = ("yearly-3", "diabetes-8", "logistic-10", "hierarchical-centred-8", "range-2")
MOVES, THRESHOLDS = (10, 20, 40, 80), (0.5, 0.75)


def measured(name: str, seed: int, keys: int, particles: int, moves: int, threshold: float) -> list[dict]:
    problem = PROBLEMS[name](seed)
    rival = IBIS(moves=moves, threshold=threshold, capacity=len(problem.observations))
    records = measure(problem, rival, keys=keys, particles=particles, history=0)
    jax.clear_caches()
    return [record | {"moves": moves, "threshold": threshold} for record in records]


def tune(keys: int, out: str | None) -> None:
    for threshold in THRESHOLDS:
        for moves in MOVES:
            cases = []
            for name in DEVELOPMENT:
                cases += measured(name, 1000, keys, 256, moves, threshold)
            for case in cases:
                json_lines.add(out, case)
            error = np.array([case["error"] for case in cases])
            narrow = min(case["spread"][0] for case in cases)
            sd = max(case["evidence sd"] for case in cases)
            seconds = {case["problem"]: round(case["CPU seconds"], 2) for case in cases}
            print(
                f"moves {moves}, threshold {threshold}: error {np.sqrt(np.mean(error**2)):.2f}, worst "
                f"{error.max():.2f}, narrowest {narrow:.2f}, largest sd of the evidence {sd:.2f}; CPU s {seconds}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="problems to test on")
    parser.add_argument("--test", type=int, help="seed to test with")
    parser.add_argument("--moves", type=int, default=40)
    parser.add_argument("--threshold", type=float, default=0.5)
    parser.add_argument("--particles", type=int, default=256)
    parser.add_argument("--keys", type=int, default=10)
    parser.add_argument("--out", help="a file of JSON lines, added to")
    args = parser.parse_args()
    if args.test is None:
        tune(args.keys, args.out)
        return
    for name in args.names or DEVELOPMENT:
        records = measured(name, args.test, args.keys, args.particles, args.moves, args.threshold)
        show(records)
        for record in records:
            json_lines.add(args.out, record)


if __name__ == "__main__":
    main()
