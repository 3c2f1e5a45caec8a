"""Flags on failures made on purpose: how often a wrong result has none, and how often a right one has.

    python -m benchmarks.static.failures --seed 1000 --keys 25 --out records.jsonl

Each stream is cut to its first rows and judged after every one of them. Wrong: the mean is off by more than half a
posterior standard deviation. Right: by less than 0.15, and the step's log predictive by less than half a nat.
"""

import argparse

import jax
import numpy as np

from benchmarks import json_lines
from benchmarks.static import hard
from benchmarks.static.catalogue import PROBLEMS
from benchmarks.static.problem import Problem, Truth
from benchmarks.static.run import RIGHT, WRONG, Runs, run_keys
from pfbr.inference.adaptive.method import Adaptive
from pfbr.inference.adaptive.static.state import StaticSettings

ROWS = 20
HALF_A_NAT = 0.5
HARDLY = StaticSettings(least_moves=0, early_moves=0, most_moves=1, most_moves_between=1, early_rounds=1)
SHORT = StaticSettings(max_stages=2)
# a way to fail: the problem, particles, rows kept, settings
FAILURES = {
    "sixteen particles, d = 8": ("diabetes-8", 16, 4096, StaticSettings()),
    "hardly any moves": ("diabetes-8", 256, 4096, HARDLY),
    "tempering cut short": ("diabetes-8", 256, 4096, SHORT),
    "nothing kept, a funnel": ("yearly-3", 256, 0, StaticSettings()),
    "nothing kept, a bent cloud": ("banana-2", 256, 0, StaticSettings()),
    "nothing kept, ranges": ("range-2", 256, 0, StaticSettings()),
    "nothing kept, two modes": ("two-modes-2", 256, 0, StaticSettings()),
    "a mode that the prior hardly holds": ("far-mode-2", 256, 4096, StaticSettings()),
    "steps and hard edges": ("steps-2", 256, 4096, StaticSettings()),
    "heavy tails in wrong units": ("heavy-tails-2", 256, 4096, StaticSettings()),
}
HARD = {"far-mode-2": hard.far_mode, "steps-2": hard.steps, "heavy-tails-2": hard.heavy_tails}


def problem(name: str, seed: int) -> Problem:
    return (HARD.get(name) or PROBLEMS[name])(seed).first(ROWS)


def longest(missed: np.ndarray) -> int:
    """Rows in a row, of any key."""
    most = run = np.zeros(len(missed), int)
    for row in missed.T:
        run = np.where(row, run + 1, 0)
        most = np.maximum(most, run)
    return int(most.max())


def judged(runs: Runs, truth: Truth) -> dict:
    predictive = np.diff(runs.evidence, axis=1, prepend=0) - np.diff(truth.log_evidence, prepend=0)
    off = np.abs(predictive) > HALF_A_NAT  # False where the truth's evidence is not known
    wrong = ~(runs.error < WRONG)
    right = (runs.error < RIGHT) & ~off
    return {
        "right": int(right.sum()),
        "right but flagged": int((right & runs.flagged).sum()),
        "wrong": int(wrong.sum()),
        "wrong and not flagged": int((wrong & ~runs.flagged).sum()),
        "in a row": longest(wrong & ~runs.flagged),
        "log predictive off": int(off.sum()),
        "off and not flagged": int((off & ~runs.flagged).sum()),
        "steps": int(wrong.size),
        "CPU seconds": float(np.mean(runs.seconds)),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--failures", nargs="+", default=list(FAILURES), choices=list(FAILURES))
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--keys", type=int, default=25)
    parser.add_argument("--out", help="a file of JSON lines, added to")
    args = parser.parse_args()
    total = {"right": 0, "right but flagged": 0, "wrong": 0, "wrong and not flagged": 0}
    for name in args.failures:
        which, particles, history, settings = FAILURES[name]
        one = problem(which, args.seed)
        truth = one.truth()
        method = Adaptive(history=min(history, ROWS), static=settings)
        said = judged(run_keys(one, truth, method, keys=args.keys, particles=particles), truth)
        print(
            f"{name}: flagged {said['right but flagged']} of {said['right']} right, not flagged "
            f"{said['wrong and not flagged']} of {said['wrong']} wrong, {said['in a row']} in a row; log predictive "
            f"off in {said['log predictive off']}, {said['off and not flagged']} not flagged; {said['steps']} steps, "
            f"{said['CPU seconds']:.2f} CPU s a stream",
            flush=True,
        )
        for count in total:
            total[count] += said[count]
        json_lines.add(args.out, {"failure": name, "seed": args.seed, "keys": args.keys, "particles": particles} | said)
        jax.clear_caches()
    print(
        f"flagged {total['right but flagged']} of {total['right']} right, not flagged {total['wrong and not flagged']} "
        f"of {total['wrong']} wrong"
    )


if __name__ == "__main__":
    main()
