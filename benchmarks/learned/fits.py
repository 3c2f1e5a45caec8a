"""A minute of `fit` from the general map beside five minutes from scratch, on models of one's own.

The same tasks are held out for both. What is compared is their loss, nats above exact sampling where the exact
posterior is known: of the map before any training, after its minute, and of the other operator after its five.
"""

import json
import time

import jax
from jax import numpy as jnp

import pfbr
from benchmarks.streams.catalogue import PROBLEMS
from benchmarks.streams.tracking import SENSORS, Tracking
from pfbr.errors import TrainingError
from pfbr.models import GaussianMixture


class Simulated(Tracking):
    """The tracker by ranges, with a law for its sensors and times, so that training can draw streams."""

    def sample_inputs(self, key):
        return {"sensor": jax.random.randint(key, (), 0, len(SENSORS))}

    def sample_dt(self, key):
        return jax.random.exponential(key) + jnp.asarray(0.05)


MODELS = {
    "mixture": GaussianMixture,
    "poisson-4": lambda: PROBLEMS["poisson-4"].model,
    "volatility-4": lambda: PROBLEMS["volatility-4"].model,
    "ranges": lambda: Simulated(noise=1.0, process=0.5),
}


def fit(name: str, operator: str, minutes: float, seed: int) -> dict:
    """One training, told in a line."""
    begun = time.process_time()
    row = {"model": name, "operator": operator, "minutes": minutes, "seed": seed}
    try:
        _, report = pfbr.fit(MODELS[name](), operator=operator, minutes=minutes, key=seed, progress=False)
    except TrainingError as error:
        return row | {"gave up": str(error)}
    return row | {
        "before": round(report.history[0]["score"], 4),
        "after": round(report.best_score, 4),
        "against exact sampling": report.exact_score is not None,
        "steps": report.steps,
        "skipped tasks": report.skipped_tasks,
        "CPU seconds": round(time.process_time() - begun, 1),
    }


def compare(names, *, seed: int, out: str | None = None) -> None:
    for name in names:
        for operator, minutes in (("general", 1.0), ("residual", 5.0)):
            row = fit(name, operator, minutes, seed)
            print(row, flush=True)
            if out is not None:
                with open(out, "a") as file:
                    file.write(json.dumps(row) + "\n")
            jax.clear_caches()
