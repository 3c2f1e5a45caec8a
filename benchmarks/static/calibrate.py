"""Simulation-based calibration of the default method on benchmark models: the truth behind simulated streams, ranked.

    python -m benchmarks.static.calibrate yearly-3 range-2 --streams 500 --length 6

A model here is that of the problem, with rows drawn from the problem's own covariates. Every stage counts.
"""

import argparse
import json
import time

import equinox as eqx
import jax
from jax import numpy as jnp

from benchmarks.static.catalogue import PROBLEMS
from benchmarks.static.student import FREEDOM
from pfbr.judging.calibration.calibrate import CalibrationSettings, calibrate
from pfbr.models.base import Model


def normal_line(key, x, row):
    return row @ x[:-1] + jnp.exp(x[-1]) * jax.random.normal(key)


def student_line(key, x, row):
    return x[0] + x[1] * row[0] + jnp.exp(x[2]) * jax.random.t(key, FREEDOM)


def yes_or_no(key, x, row):
    return jax.random.bernoulli(key, jax.nn.sigmoid(row @ x)).astype(x.dtype)


def effect(key, x, row):
    return x[2:][row[0].astype(int)] + row[1] * jax.random.normal(key)


def distance(key, x, row):
    return jnp.linalg.norm(x - row) + 0.3 * jax.random.normal(key)


def bent(key, x, row):
    mean = row[0] * x[1] + row[1] * (x[0] + x[1] ** 2)
    return mean + (2.0 * row[0] + 0.5 * row[1]) * jax.random.normal(key)


def one_of_two(key, x, row):
    k1, k2 = jax.random.split(key)
    return x[0] + jnp.where(jax.random.bernoulli(k1), x[1], 0.0) + jax.random.normal(k2)


OBSERVE = {
    "yearly-3": normal_line,
    "diabetes-8": normal_line,
    "student-3": student_line,
    "logistic-2": yes_or_no,
    "hierarchical-centred-8": effect,
    "range-2": distance,
    "banana-2": bent,
    "two-modes-2": one_of_two,
}


class Observed(Model):
    """A problem's model that draws its observations too; covariates are rows of the problem's."""

    model: Model
    rows: jax.Array
    name: str = eqx.field(static=True)

    @property
    def dim(self) -> int:
        return self.model.dim

    def sample_prior(self, key):
        return self.model.sample_prior(key)

    def log_prior(self, x):
        return self.model.log_prior(x)

    def sample_inputs(self, key):
        return jax.random.choice(key, self.rows)

    def log_likelihood(self, x, observation, *, inputs):
        if self.name == "two-modes-2":  # which asks for no covariates
            return self.model.log_likelihood(x, observation)
        return self.model.log_likelihood(x, observation, inputs=inputs)

    def sample_observation(self, key, x, *, inputs):
        return OBSERVE[self.name](key, x, inputs)[None]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", choices=list(OBSERVE))
    parser.add_argument("--seed", type=int, default=5001)
    parser.add_argument("--streams", type=int, default=500)
    parser.add_argument("--length", type=int, default=6)
    parser.add_argument("--particles", type=int, default=256)
    parser.add_argument("--out", help="a file of JSON lines, added to")
    args = parser.parse_args()
    settings = CalibrationSettings(streams=args.streams, length=args.length, num_particles=args.particles)
    for name in args.names:
        problem = PROBLEMS[name](args.seed)
        rows = jnp.zeros((1, 1)) if problem.inputs is None else jnp.asarray(problem.inputs)
        begun = time.process_time()
        found = calibrate(Observed(problem.model, rows, name), key=args.seed, settings=settings)
        line = {
            "problem": name,
            "seed": args.seed,
            "streams": args.streams,
            "length": args.length,
            "particles": args.particles,
            "trusted": found.trusted,
            "least p": float(found.arrays["p_values"].min()),
            "failed stages": found.settings["failed_stages"],
            "coverage of 95 % intervals": found.arrays["coverage"][-1].mean(axis=0).round(3).tolist(),
            "CPU seconds, compilation included": round(time.process_time() - begun, 1),
        }
        print(json.dumps(line), flush=True)
        print(found.verdict, flush=True)
        if args.out:
            with open(args.out, "a") as file:
                file.write(json.dumps(line) + "\n")
        jax.clear_caches()


if __name__ == "__main__":
    main()
