"""Flags on failures made on purpose: how often a wrong step has none, and how often a right one has.

    python -m benchmarks.streams.failures --seed 1000 --streams 12 --out records.jsonl

Wrong: the mean is off by more than half a posterior standard deviation. Right: by less than 0.15. In a row: the longest
stretch of wrong steps without a flag.
"""

import argparse

import jax
import numpy as np

from benchmarks import json_lines
from benchmarks.streams import hard
from benchmarks.streams.brute_force import distances
from benchmarks.streams.catalogue import PROBLEMS
from benchmarks.streams.run import RIGHT, WRONG
from pfbr.inference.adaptive.filter.settings import Settings
from pfbr.inference.adaptive.method import Adaptive
from pfbr.inference.method import record

PLAIN = Settings()
SHORT = Settings(rounds=2, oversample=0, second_look=0, move_paths=False)
STUCK = Settings(moves=1, oversample=0, second_look=0, move_paths=False)
KERNELS = Settings(oversample=0, move_paths=False, slack=0.0, defensive=0.3)
# a way to fail: the problem, particles, settings
FAILURES = {
    "mirror images": ("mirror", 256, PLAIN),
    "mirror images, few particles": ("mirror", 48, PLAIN),
    "rings": ("ranges-sharp", 256, PLAIN),
    "rings, no paths and hardly any moves": ("ranges-sharp", 256, STUCK),
    "two modes": ("growth", 256, PLAIN),
    "two modes, few particles": ("growth", 40, PLAIN),
    "two modes, kernels alone": ("growth", 256, KERNELS),
    "an outlier of 27 standard deviations": ("outlier", 256, PLAIN),
    "noise ten times what the model says": ("wrong-noise", 256, PLAIN),
    "tiny noise": ("tiny-noise", 256, PLAIN),
    "tiny noise, tempering cut short": ("tiny-noise", 64, SHORT),
    "singular noise": ("linear-singular", 256, PLAIN),
}
COUNTS = ("right", "right but flagged", "wrong", "wrong and not flagged")


def longest(run: np.ndarray) -> int:
    """Of the stretches in which it holds."""
    best = now = 0
    for holds in run:
        now = now + 1 if holds else 0
        best = max(best, now)
    return best


def measure(name: str, *, seed: int, streams: int) -> dict:
    which, particles, settings = FAILURES[name]
    problem, method = (hard.PROBLEMS.get(which) or PROBLEMS[which]), Adaptive(filter=settings)
    found = dict.fromkeys(COUNTS, 0) | {"in a row": 0}
    errors = []
    for one in range(seed, seed + streams):
        model, truth = problem.model_of(one), problem.truth(one)
        said = record(jax.random.key(one), method, model, problem.simulate(one).stream, particles)
        weights = np.exp(np.asarray(said.particles.log_weights, float))
        means = np.einsum("tn,tnd->td", weights / weights.sum(1, keepdims=True), np.asarray(said.particles.points))
        error, flagged = distances(means, truth), np.asarray(said.info.flagged, bool)
        right, missed = error < RIGHT, ~(error < WRONG) & ~flagged
        for count, value in zip(COUNTS, (right, right & flagged, ~(error < WRONG), missed), strict=True):
            found[count] += int(value.sum())
        found["in a row"] = max(found["in a row"], longest(missed))
        errors.append(np.sqrt(np.mean(error**2)))
    return (
        {"failure": name, "particles": particles, "seed": seed, "streams": streams}
        | found
        | {
            "error": float(np.median(errors)),
            "worst": float(np.max(errors)),
        }
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--failures", nargs="+", default=list(FAILURES), choices=list(FAILURES))
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--streams", type=int, default=12)
    parser.add_argument("--out", help="a file of JSON lines, added to")
    args = parser.parse_args()
    total = dict.fromkeys(COUNTS, 0)
    for name in args.failures:
        r = measure(name, seed=args.seed, streams=args.streams)
        print(
            f"{name}, n={r['particles']}: error {r['error']:.2f} (worst {r['worst']:.2f}); flagged "
            f"{r['right but flagged']} of {r['right']} right steps, not flagged {r['wrong and not flagged']} of "
            f"{r['wrong']} wrong, {r['in a row']} in a row",
            flush=True,
        )
        total = {count: total[count] + r[count] for count in COUNTS}
        json_lines.add(args.out, r)
        jax.clear_caches()
    print(
        f"in all: flagged {total['right but flagged']} of {total['right']} right steps, not flagged "
        f"{total['wrong and not flagged']} of {total['wrong']} wrong"
    )


if __name__ == "__main__":
    main()
