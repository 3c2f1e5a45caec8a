"""Curved posteriors in the plane, many streams: nats above as many exact draws, by the default method or another.

    python -m benchmarks.static.plane_streams --streams 100 --out records.jsonl
    python -m benchmarks.static.plane_streams --history 0 --families mixture logistic poisson student

Streams, truth (a grid) and score (cross entropy of a kernel density) are those of `benchmarks/unseen.py`. A stage is
lost where it is more than a nat above exact draws.
"""

import argparse
import time

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

from benchmarks import json_lines
from benchmarks.unseen import LENGTHS, PARTICLES, STREAMS, TEST_SEED, reference
from pfbr.inference.method import record
from pfbr.inference.registry import as_method
from pfbr.metrics.scores import cross_entropy
from pfbr.models.base import Model, normal_log_density
from pfbr.training.families import TESTING, ModelFamily

FAMILIES = ("range-only", "banana", "mixture")  # and the milder ones, for streams of which nothing is kept
FREEDOM = 4.0
LOST = 1.0  # nats


class StudentScale(Model):
    """Centre and log scale of Student-t noise, both unknown: x = (centre, log scale), standard normal before."""

    dim: int = eqx.field(static=True, default=2)

    def sample_prior(self, key):
        return jax.random.normal(key, (2,))

    def log_prior(self, x):
        return normal_log_density(x, 0.0, 1.0)

    def sample_observation(self, key, x):
        return (x[0] + jnp.exp(x[1]) * jax.random.t(key, FREEDOM))[None]

    def log_likelihood(self, x, observation):
        z = (observation[0] - x[0]) / jnp.exp(x[1])
        return jax.scipy.stats.t.logpdf(z, FREEDOM) - x[1]


KNOWN = TESTING | {"student": ModelFamily(StudentScale())}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--families", nargs="+", default=FAMILIES, choices=list(KNOWN))
    parser.add_argument("--seed", type=int, default=TEST_SEED)
    parser.add_argument("--streams", type=int, default=STREAMS)
    parser.add_argument("--history", type=int, default=4096)
    parser.add_argument("--particles", type=int, default=PARTICLES)
    parser.add_argument("--method", default="auto")
    parser.add_argument("--out", help="a file of JSON lines, added to")
    args = parser.parse_args()
    score = jax.jit(jax.vmap(cross_entropy))
    for name in args.families:
        length = LENGTHS.get(name, 60)
        above, seconds, flagged = [], [], []
        for i, key in enumerate(jax.random.split(jax.random.key(args.seed), args.streams)):
            task, draws, best = reference(KNOWN[name], key, length, args.particles)
            method = as_method(args.method, task.model, history=args.history, rows=length)
            run = lambda: record(jax.random.fold_in(key, 2), method, task.model, task.stream, args.particles)  # noqa: B023
            if i == 0:
                jax.block_until_ready(run().particles)  # compiles
            begun = time.process_time()
            said = jax.block_until_ready(run())
            seconds.append(time.process_time() - begun)
            above.append(np.asarray(score(said.particles, draws) - best))
            flagged.append(np.zeros(length, bool) if said.info.flagged is None else np.asarray(said.info.flagged))
        above, flagged = np.stack(above), np.stack(flagged)
        streams = above.mean(axis=1)
        line = {
            "family": name,
            "method": args.method,
            "history": args.history,
            "particles": args.particles,
            "streams": args.streams,
            "stages": length,
            "seed": args.seed,
            "mean": round(float(above.mean()), 3),
            "standard error": round(float(streams.std(ddof=1) / len(streams) ** 0.5), 3),
            "worst stream": round(float(streams.max()), 3),
            "worst at any stage": round(float(above.max()), 3),
            "where": [int(i) for i in np.unravel_index(above.argmax(), above.shape)],
            "stages above 0.25": round(float(np.mean(above > 0.25)), 4),
            "streams with a stage above 0.25": int(np.sum(np.any(above > 0.25, axis=1))),
            "stages lost": int(np.sum(above > LOST)),
            "stages lost, not flagged": int(np.sum((above > LOST) & ~flagged)),
            "steps flagged": round(float(np.mean(flagged)), 4),
            "CPU seconds": round(float(np.mean(seconds)), 3),
        }
        print(line, flush=True)
        json_lines.add(args.out, line)


if __name__ == "__main__":
    main()
