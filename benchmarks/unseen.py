"""Families that no operator was trained on: ours beside one-pass SMC with as many particles and with ten times as many.

"collocation" needs no training; "corrected" is the trained operator with its steps corrected, the past not kept.

    python benchmarks/unseen.py --operator src/pfbr/inference/pretrained/static-2d.pfbr --out results.jsonl

Score above as many exact draws (256), 25 unseen streams each, grid truth.
"""

import argparse
import json
import time

import equinox as eqx
import jax
import numpy as np

import pfbr
from pfbr.baselines import OnePassSMC
from pfbr.inference.collocation.method import collocation_operator
from pfbr.inference.corrected import Corrected
from pfbr.inference.method import record
from pfbr.metrics.scores import cross_entropy
from pfbr.metrics.truth import exact
from pfbr.particles.particles import equally_weighted
from pfbr.particles.resampling import systematic
from pfbr.training.families import TESTING

TEST_SEED, STREAMS, PARTICLES, DRAWS = 40_000, 25, 256, 1000
LENGTHS = {"mixture": 30, "range-only": 20, "banana": 20}  # 60 for the others


class Thinned(OnePassSMC):
    """Ten times the particles, scored by as many of them as the others have: the score of a kernel density grows with
    the number of points, however good they are."""

    def particles(self, state):
        kept = systematic(jax.random.key(0), state.log_weights, PARTICLES)
        return equally_weighted(state.points[kept])


@eqx.filter_jit
def reference(family, key, length, num_particles=PARTICLES):
    """A stream, draws of its posteriors, and what as many exact draws as we have particles score."""
    task = family.sample(key, length)
    truth = exact(task.model, task.stream)
    keys = jax.random.split(jax.random.fold_in(key, 1), (2, length))
    draws = jax.vmap(lambda t, k: t.sample(k, DRAWS))(truth, keys[0])
    best = jax.vmap(lambda t, k: t.sample(k, num_particles))(truth, keys[1])
    return task, draws, jax.vmap(lambda b, d: cross_entropy(equally_weighted(b), d))(best, draws)


@eqx.filter_jit
def score(method, task, draws, key, num_particles):
    particles = record(key, method, task.model, task.stream, num_particles).particles
    return jax.vmap(cross_entropy)(particles, draws)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operator", help="a trained operator for two static unknowns")
    parser.add_argument("--families", default=",".join(TESTING))
    parser.add_argument("--seed", type=int, default=TEST_SEED)
    parser.add_argument("--methods", help="names separated by semicolons; all by default")
    parser.add_argument("--out")
    args = parser.parse_args()
    methods = {"gaussian": (pfbr.gaussian_operator(), PARTICLES)}
    if args.operator:
        methods["trained"] = (pfbr.load(args.operator), PARTICLES)
        methods["corrected"] = (Corrected(pfbr.load(args.operator)), PARTICLES)
    methods["collocation"] = (collocation_operator(), PARTICLES)
    methods["one-pass SMC"] = (OnePassSMC(), PARTICLES)
    methods["one-pass SMC, ten times"] = (OnePassSMC(), 10 * PARTICLES)
    methods["one-pass SMC, ten times, thinned"] = (Thinned(), 10 * PARTICLES)
    if args.methods:
        methods = {name: methods[name] for name in args.methods.split(";")}
    for name in args.families.split(","):
        length = LENGTHS.get(name, 60)
        keys = jax.random.split(jax.random.key(args.seed), STREAMS)
        references = [reference(TESTING[name], key, length) for key in keys]
        for label, (method, num_particles) in methods.items():
            started = time.process_time()
            above = np.stack(
                [
                    np.asarray(score(method, task, draws, jax.random.fold_in(key, 2), num_particles) - best)
                    for key, (task, draws, best) in zip(keys, references, strict=True)
                ]
            )
            per_stream = above.mean(axis=1)
            line = {
                "family": name,
                "stages": length,
                "method": label,
                "particles": num_particles,
                "mean": round(float(above.mean()), 3),
                "standard error": round(float(per_stream.std(ddof=1) / STREAMS**0.5), 3),
                "median stream": round(float(np.median(per_stream)), 3),
                "worst stream": round(float(per_stream.max()), 3),
                "median at the last stage": round(float(np.median(above[:, -1])), 3),
                "worst at any stage": round(float(above.max()), 3),
                "CPU seconds, compilation and scoring included": round(time.process_time() - started, 1),
            }
            print(json.dumps(line), flush=True)
            if args.out:
                with open(args.out, "a") as file:
                    file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
