"""The scores that the documentation states: train an operator for a model, score it on 25 unseen streams.

    python benchmarks/scores.py linear-dynamics-10 --operator paper --minutes 5 --out results.jsonl

Scores stand beside those of as many exact draws. Training, validation and test streams have different seeds. Every line
of the output names its settings.
"""

import argparse
import json
import time

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

import pfbr
from pfbr.inference.method import record
from pfbr.metrics.scores import cross_entropy, mean_error
from pfbr.metrics.truth import exact
from pfbr.models.simulate import simulate
from pfbr.particles.particles import equally_weighted

TEST_SEED = 20_000
MIXTURE_TRUTH = jnp.array([1.0, -2.0])
# model, the unknown behind the test streams (None: drawn from the prior), stages, training settings
CASES = {
    "linear-dynamics-10": (lambda: pfbr.models.LinearDynamics.random(0, 10), None, 25, {"length": 25, "batch": 2}),
    "linear-dynamics-2": (lambda: pfbr.models.LinearDynamics.random(0, 2), None, 25, {"length": 25, "batch": 4}),
    "gaussian-mean-8": (lambda: pfbr.models.GaussianMean(8), None, 10, {"length": 10, "batch": 4}),
    "gaussian-mixture": (lambda: pfbr.models.GaussianMixture(), MIXTURE_TRUTH, 30, {"length": 30, "batch": 16}),
}


def score(operator, model, at, length, num_particles=256, num_streams=25, num_draws=2000):
    """Cross entropy above exact sampling (streams, stages), the same for the error of the mean, and mode masses."""

    @eqx.filter_jit
    def one(operator, key):
        stream_key, run_key, draw_key, exact_key = jax.random.split(key, 4)
        observations = simulate(stream_key, model, length, at=at).observations
        truth = exact(model, observations)
        draws = jax.vmap(lambda t, k: t.sample(k, num_draws))(truth, jax.random.split(draw_key, length))
        best = jax.vmap(lambda t, k: t.sample(k, num_particles))(truth, jax.random.split(exact_key, length))
        best = jax.vmap(equally_weighted)(best)
        ours = record(run_key, operator, model, observations, num_particles).particles
        means = truth.mean if hasattr(truth, "cov") else jax.vmap(lambda t: t.mean)(truth)
        return {
            # stage by stage: with many particles all stages at once would not fit into memory
            "exact": jax.lax.map(lambda pair: cross_entropy(*pair), (best, draws)),
            "ours": jax.lax.map(lambda pair: cross_entropy(*pair), (ours, draws)),
            "mean error, exact": jax.vmap(mean_error)(best, means),
            "mean error, ours": jax.vmap(mean_error)(ours, means),
            "mode mass error": jnp.abs(jnp.mean(ours.points[..., 1] > 0, -1) - jnp.mean(draws[..., 1] > 0, -1)),
        }

    keys = jax.random.split(jax.random.key(TEST_SEED), num_streams)
    results = [one(operator, key) for key in keys]
    return {name: np.stack([np.asarray(r[name]) for r in results]) for name in results[0]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--operator", default="auto", help="auto, paper, residual, gaussian, or a file")
    parser.add_argument("--start", help="a trained operator to go on from")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--particles", type=int, default=256, help="in training; the test uses 256")
    parser.add_argument("--learning-rate", type=float, default=2e-3)
    parser.add_argument("--batch", type=int, help="tasks a step, where it is not to be the case's own")
    parser.add_argument("--save", help="write the operator to this file")
    parser.add_argument("--out", help="append the result to this file")
    args = parser.parse_args()
    make, at, length, training = CASES[args.case]
    model = make()
    started = time.monotonic()
    if args.operator == "gaussian":
        operator, steps = pfbr.gaussian_operator(), 0
    elif args.operator.endswith(".pfbr"):
        operator = pfbr.load(args.operator)
        steps = operator.provenance.document["steps"]
    else:
        if args.batch:
            training = dict(training, batch=args.batch)
        settings = pfbr.TrainingSettings(
            minutes=args.minutes, num_particles=args.particles, learning_rate=args.learning_rate, **training
        )
        start = pfbr.load(args.start) if args.start else args.operator
        operator, report = pfbr.fit(model, key=args.seed, operator=start, settings=settings)
        steps = report.steps
        if args.save:
            pfbr.save(args.save, operator)
    trained = time.monotonic() - started
    scores = score(operator, model, at, length)
    above = scores["ours"] - scores["exact"]
    per_stream = above.mean(axis=1)
    result = {
        "case": args.case,
        "operator": args.operator,
        "seed": args.seed,
        "training seconds": round(trained, 1),
        "training steps": steps,
        "exact": round(float(scores["exact"].mean()), 4),
        "above exact": round(float(above.mean()), 4),
        "standard error": round(float(per_stream.std(ddof=1) / len(per_stream) ** 0.5), 4),
        "above exact at first, middle, last stage": [round(float(above[:, i].mean()), 4) for i in (0, length // 2, -1)],
        "mean error, exact": round(float(scores["mean error, exact"].mean()), 4),
        "mean error, ours": round(float(scores["mean error, ours"].mean()), 4),
    }
    if args.case == "gaussian-mixture":
        last = scores["mode mass error"][:, -1]
        result["mode mass error at the last stage: mean, worst"] = [
            round(float(last.mean()), 3),
            round(float(last.max()), 3),
        ]
    print(json.dumps(result))
    if args.out:
        with open(args.out, "a") as file:
            file.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
