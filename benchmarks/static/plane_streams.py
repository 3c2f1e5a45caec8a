"""Curved posteriors in the plane, many streams: nats above as many exact draws, by the default method.

    python -m benchmarks.static.plane_streams --out records.jsonl

Streams, truth (a grid) and score (cross entropy of a kernel density) are those of `benchmarks/unseen.py`.
"""

import argparse
import json
import time

import jax
import numpy as np

from benchmarks.unseen import LENGTHS, PARTICLES, STREAMS, TEST_SEED, reference
from pfbr.inference.method import record
from pfbr.inference.registry import as_method
from pfbr.metrics.scores import cross_entropy
from pfbr.training.families import TESTING

FAMILIES = ("range-only", "banana", "mixture")  # and the milder ones, for streams of which nothing is kept


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--families", nargs="+", default=FAMILIES, choices=list(TESTING))
    parser.add_argument("--seed", type=int, default=TEST_SEED)
    parser.add_argument("--streams", type=int, default=STREAMS)
    parser.add_argument("--history", type=int, default=4096)
    parser.add_argument("--method", default="auto")
    parser.add_argument("--out", help="a file of JSON lines, added to")
    args = parser.parse_args()
    score = jax.jit(jax.vmap(cross_entropy))
    for name in args.families:
        length = LENGTHS.get(name, 60)
        above, seconds, flagged = [], [], []
        for i, key in enumerate(jax.random.split(jax.random.key(args.seed), args.streams)):
            task, draws, best = reference(TESTING[name], key, length)
            method = as_method(args.method, task.model, history=args.history, rows=length)
            run = lambda: record(jax.random.fold_in(key, 2), method, task.model, task.stream, PARTICLES)  # noqa: B023
            if i == 0:
                jax.block_until_ready(run().particles)  # compiles
            begun = time.process_time()
            said = jax.block_until_ready(run())
            seconds.append(time.process_time() - begun)
            above.append(np.asarray(score(said.particles, draws) - best))
            flagged.append(np.asarray(said.info.flagged))
        above = np.stack(above)
        streams = above.mean(axis=1)
        line = {
            "family": name,
            "method": args.method,
            "history": args.history,
            "particles": PARTICLES,
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
            "steps flagged": round(float(np.mean(flagged)), 4),
            "CPU seconds": round(float(np.mean(seconds)), 3),
        }
        print(json.dumps(line), flush=True)
        if args.out:
            with open(args.out, "a") as file:
                file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
