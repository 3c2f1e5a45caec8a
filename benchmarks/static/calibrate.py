"""Simulation-based calibration of the default method on benchmark models: the truth behind simulated streams, ranked.

    python -m benchmarks.static.calibrate --streams 500 --length 6              # every model
    python -m benchmarks.static.calibrate yearly-3 --broken                     # must fail

A model here is that of the problem, with rows drawn from the problem's own covariates. Every stage counts. `--broken`
draws all particles a fifth closer to their mean before they are ranked: a posterior too narrow, as from a bug.
"""

import argparse
import time

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

from benchmarks.calibrated import Narrow, tell
from benchmarks.static.catalogue import PROBLEMS
from benchmarks.static.student import FREEDOM
from pfbr.inference.method import Method
from pfbr.inference.registry import as_method
from pfbr.judging.calibration.calibrate import Calibration, CalibrationSettings, conclude
from pfbr.judging.calibration.ranks import follow, simulated_streams
from pfbr.models.base import Model

TOO_NARROW = 0.8


def normal_line(model, key, x, row):
    return row @ x[:-1] + jnp.exp(x[-1]) * jax.random.normal(key)


def student_line(model, key, x, row):
    return x[0] + x[1] * row[0] + jnp.exp(x[2]) * jax.random.t(key, FREEDOM)


def response(model, key, x, row):
    """Of a generalised linear model."""
    eta = row[: model.dim] @ x
    if model.kind == "poisson":
        return jax.random.poisson(key, jnp.exp(jnp.minimum(eta, 16.0))).astype(x.dtype)
    trials = row[model.dim] if model.kind == "binomial" else 1.0
    return jax.random.binomial(key, trials, jax.nn.sigmoid(eta)).astype(x.dtype)


def effect(model, key, x, row):
    here = (jnp.arange(model.groups) == row[0]).astype(x.dtype) @ x[2:]
    centre = here if model.centred else x[0] + jnp.exp(x[1]) * here
    return centre + row[1] * jax.random.normal(key)


def component(model, key, x, row):
    k1, k2 = jax.random.split(key)
    first = jax.random.bernoulli(k1, jax.nn.sigmoid(x[4]))
    mean, log_sd = jnp.where(first, x[0], x[0] + jnp.exp(x[1])), jnp.where(first, x[2], x[3])
    return mean + jnp.exp(log_sd) * jax.random.normal(k2)


def distance(model, key, x, row):
    return jnp.linalg.norm(x - row) + 0.3 * jax.random.normal(key)


def bent(model, key, x, row):
    mean = row[0] * x[1] + row[1] * (x[0] + x[1] ** 2)
    return mean + (2.0 * row[0] + 0.5 * row[1]) * jax.random.normal(key)


def one_of_two(model, key, x, row):
    k1, k2 = jax.random.split(key)
    return x[0] + jnp.where(jax.random.bernoulli(k1), x[1], 0.0) + jax.random.normal(k2)


OBSERVE = {
    "yearly-3": normal_line,
    "longley-8": normal_line,
    "diabetes-8": normal_line,
    "diabetes-26": normal_line,
    "student-3": student_line,
    "logistic-2": response,
    "logistic-10": response,
    "binomial-2": response,
    "binomial-10": response,
    "hierarchical-centred-8": effect,
    "hierarchical-noncentred-8": effect,
    "mixture-5": component,
    "range-2": distance,
    "banana-2": bent,
    "two-modes-2": one_of_two,
}


class Observed(Model):
    """A problem's model that draws its observations too; covariates are rows of the problem's."""

    law: Model
    rows: jax.Array
    name: str = eqx.field(static=True)

    @property
    def dim(self) -> int:
        return self.law.dim

    def sample_prior(self, key):
        return self.law.sample_prior(key)

    def log_prior(self, x):
        return self.law.log_prior(x)

    def sample_inputs(self, key):
        return jax.random.choice(key, self.rows)

    def log_likelihood(self, x, observation, *, inputs):
        if self.name in ("two-modes-2", "mixture-5"):  # which ask for no covariates
            return self.law.log_likelihood(x, observation)
        return self.law.log_likelihood(x, observation, inputs=inputs)

    def sample_observation(self, key, x, *, inputs):
        return OBSERVE[self.name](self.law, key, x, inputs)[None]


def ranked(method: Method, model: Model, seed: int, settings: CalibrationSettings) -> Calibration:
    """As `pfbr calibrate` does, without a second order of the same rows, which takes as long to compile."""
    data_key, run_key = jax.random.split(jax.random.key(seed))
    drawn = simulated_streams(data_key, model, settings.streams, settings.length)
    parts = list(follow(run_key, method, model, drawn, settings.num_particles))
    ranks, whole = (np.concatenate(pieces) for pieces in zip(*parts, strict=True))
    return conclude(ranks, whole, settings)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAMES", help=", ".join(OBSERVE))
    parser.add_argument("--seed", type=int, default=5001)
    parser.add_argument("--streams", type=int, default=500)
    parser.add_argument("--length", type=int, default=6)
    parser.add_argument("--particles", type=int, default=256)
    parser.add_argument("--broken", action="store_true", help="a posterior too narrow by a fifth")
    parser.add_argument("--out", help="a file of JSON lines, added to")
    args = parser.parse_args()
    settings = CalibrationSettings(streams=args.streams, length=args.length, num_particles=args.particles)
    for name in args.names or OBSERVE:
        problem = PROBLEMS[name](args.seed)
        rows = jnp.zeros((1, 1)) if problem.inputs is None else jnp.asarray(problem.inputs)
        model = Observed(problem.model, rows, name)
        method = as_method("auto", model, rows=args.length)
        begun = time.process_time()
        chosen = Narrow(method, TOO_NARROW) if args.broken else method
        found = ranked(chosen, model, args.seed, settings)
        seconds = time.process_time() - begun
        tell(name, found, settings, seed=args.seed, broken=args.broken, seconds=seconds, out=args.out)
        jax.clear_caches()


if __name__ == "__main__":
    main()
