"""Simulation-based calibration of the default method on models whose unknown moves: truths ranked at every stage.

    python -m benchmarks.streams.calibrate ranges growth volatility --seed 5000 --streams 500 --length 12

Times and inputs of a report are drawn as the benchmark streams draw them. `--narrow 0.85` draws all particles to their
mean by that share after every update, a broken method that has to be refused.
"""

import argparse
import time

import jax
from jax import numpy as jnp

from benchmarks.calibrated import Narrow, tell
from benchmarks.streams import rotated
from benchmarks.streams.counts_unknown import UnknownCounts
from benchmarks.streams.linear import LinearTracking, TrackingByDraws
from benchmarks.streams.scalar import Counts, Growth, StochasticVolatility
from benchmarks.streams.tracking import Tracking
from benchmarks.streams.volatility_unknown import UnknownVolatility
from pfbr.inference.registry import as_method
from pfbr.judging.calibration.calibrate import CalibrationSettings, calibrate
from pfbr.models.base import StateSpaceModel


def gap(key):
    """Between two reports of a track, as the streams have it."""
    return jax.random.exponential(key) + 0.05


class Ranges(Tracking):
    def sample_inputs(self, key):
        return {"sensor": jax.random.randint(key, (), 0, 3)}

    def sample_dt(self, key):
        return gap(key)


class GrowthAtAnyStep(Growth):
    def sample_inputs(self, key):
        return {"k": jax.random.randint(key, (), 1, 200).astype(jnp.float32)}


class Linear(LinearTracking):
    def sample_dt(self, key):
        return gap(key)


class LinearByDraws(TrackingByDraws):
    def sample_dt(self, key):
        return gap(key)


MODELS: dict[str, StateSpaceModel] = {
    "ranges": Ranges(1.0, 0.5),
    "bearings": Ranges(0.02, 0.5, bearings=True),
    "growth": GrowthAtAnyStep(),
    "volatility": StochasticVolatility(),
    "poisson": Counts(),
    "negative-binomial": Counts(dispersion=3.0),
    "linear": Linear(),
    "linear-by-draws": LinearByDraws(),
    "volatility-unknown": UnknownVolatility(),
    "counts-unknown": UnknownCounts(),
    **{problem.name: problem.model for problem in rotated.PROBLEMS},
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", choices=MODELS, metavar="NAMES", help=", ".join(MODELS))
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--streams", type=int, default=500)
    parser.add_argument("--length", type=int, default=12)
    parser.add_argument("--particles", type=int, default=256)
    parser.add_argument("--narrow", type=float, help="break the method: draw particles to their mean by this share")
    parser.add_argument("--out", help="a file of JSON lines, added to")
    args = parser.parse_args()
    settings = CalibrationSettings(streams=args.streams, length=args.length, num_particles=args.particles)
    for name in args.names:
        model, begun = MODELS[name], time.process_time()
        method = as_method("auto", model)
        chosen = method if args.narrow is None else Narrow(method, args.narrow)
        found = calibrate(model, method=chosen, key=args.seed, settings=settings)
        seconds, broken = time.process_time() - begun, args.narrow is not None
        tell(name, found, settings, seed=args.seed, broken=broken, seconds=seconds, out=args.out)
        jax.clear_caches()


if __name__ == "__main__":
    main()
