"""Flags on failures made on purpose: how often a wrong result has none, and how often a right one has.

    python -m benchmarks.static.failures --seed 1000 --keys 25 --out records.jsonl

Wrong: the mean is off by more than half a posterior standard deviation. Right: by less than 0.15.
"""

import argparse
import json

import jax

from benchmarks.static import hard
from benchmarks.static.catalogue import PROBLEMS
from benchmarks.static.problem import Problem
from benchmarks.static.run import measure, show
from pfbr.inference.adaptive.method import Adaptive
from pfbr.inference.adaptive.static.state import StaticSettings

HARDLY = StaticSettings(least_moves=0, early_moves=0, most_moves=1, most_moves_between=1, early_rounds=1)
SHORT = StaticSettings(max_stages=2)
# a way to fail: the problem, particles, rows kept, settings
FAILURES = {
    "sixteen particles, d = 8": ("diabetes-8", 16, 4096, StaticSettings()),
    "hardly any moves": ("yearly-3", 256, 4096, HARDLY),
    "tempering cut short": ("yearly-3", 256, 4096, SHORT),
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
    return (HARD.get(name) or PROBLEMS[name])(seed)


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
        method = Adaptive(history=min(history, len(one.observations)), static=settings)
        records = measure(one, method, keys=args.keys, particles=particles, history=history)
        print(f"{name}:")
        show(records)
        for r in records:
            r["failure"], r["method"] = name, "auto"
            for count in total:
                total[count] += r[count]
        if args.out:
            with open(args.out, "a") as file:
                file.writelines(json.dumps(r) + "\n" for r in records)
        jax.clear_caches()
    print(
        f"flagged {total['right but flagged']} of {total['right']} right, not flagged {total['wrong and not flagged']} "
        f"of {total['wrong']} wrong"
    )


if __name__ == "__main__":
    main()
