"""The methods of the logistic-regression experiments: how the operators are trained, and the baselines tuned."""

from collections.abc import Callable, Sequence
from typing import Any

import jax

from pfbr.baselines import IBIS, SGLD, MirrorDescent, NonparametricVI, OnePassSMC, StreamingSVI
from pfbr.baselines.one_by_one import OneByOne
from pfbr.inference.method import Method
from pfbr.io.records import Measurement, Records
from pfbr.models.minibatch import MiniBatch
from pfbr.paper.contract import Run
from pfbr.paper.digits.rotations import RotatedDigits
from pfbr.paper.digits.scoring import choose
from pfbr.paper.digits.tasks import tuning_streams
from pfbr.paper.streams import TUNING_SEED
from pfbr.paper.trained import Recipe
from pfbr.paper.tuned import TUNED, remembered

# Quasi-Monte Carlo draws are better, but all methods shall start from the same particles, and the baselines' are i.i.d.
ARCHITECTURE: dict[str, dict[str, Any]] = {
    "informed": {"qmc": False},
    "paper": {"qmc": False, "feed": "mean", "time": "fixed"},
}

# What the full run chose (3 validation tasks of 20 batches, 256 particles), for runs that do not tune.
CHOSEN = {"smc-one-pass": 3, "svi": 1, "sgld": 2, "pmd": 8, "npv": 5, "ibis": 1}


def recipe(
    file: str,
    *,
    kind: str = "informed",
    objective: str = "prequential",
    steps: int = 700,  # a quarter of an hour on one busy core
    seed: int = 0,
    **changes: Any,
) -> Recipe:
    """Segments of eight updates in streams of 32; few particles, but enough to know a covariance in 51 dimensions."""
    settings: dict[str, Any] = {
        "num_particles": 128,
        "length": 8,
        "segments": 4,
        "batch": 4,
        "learning_rate": 1e-2,
        "validate_every": 100,
        "validation_tasks": 16,
    }
    return Recipe(
        file,
        kind,
        steps,
        settings | changes,
        seed=seed,
        objective=objective,
        architecture=ARCHITECTURE[kind],
        quick_steps=40,
    )


def candidates(capacity: int, batch: int) -> dict[str, dict[str, Method]]:
    """Settings to choose from, in words. Baselines that store data get room for `capacity` batches, all that there are.

    A whole batch leaves SMC and IBIS with one particle of 256; they are given its images one by one.
    """
    return {
        "smc-one-pass": {
            f"images one by one, bandwidth {b or 'by rule'}": OneByOne(OnePassSMC(bandwidth=b))
            for b in (None, 0.1, 0.2, 0.4)
        },
        "svi": {
            f"{'full rank' if f else 'mean field'}, rate {r}": StreamingSVI(full_rank=f, rate=r)
            for f in (True, False)
            for r in (0.03, 0.1, 0.3)
        },
        "sgld": {f"step {e}": SGLD(step_size=e, capacity=capacity) for e in (0.03, 0.1, 0.3, 0.6)},
        "pmd": {
            f"step {e}, bandwidth {h} of Silverman's": MirrorDescent(step_size=e, smoothing=h, capacity=capacity)
            for e in (0.01, 0.03, 0.1, 0.3)
            for h in (0.1, 0.3, 1.0)
        },
        "npv": {
            f"rate {r}, {k} components": NonparametricVI(rate=r, components=k, batch=4, capacity=capacity)
            for r in (0.03, 0.1, 0.3)
            for k in (4, 16)
        },
        "ibis": {f"images one by one, {m} moves": OneByOne(IBIS(moves=m, capacity=capacity * batch)) for m in (5, 20)},
    }


def tuned_baselines(
    run: Run,
    records: Records,
    model: MiniBatch,
    store: Callable[[], RotatedDigits],
    *,
    capacity: int,
    num_particles: int,
    num_tasks: int,
    length: int,
    names: Sequence[str],
) -> dict[str, Method]:
    """Each with the setting whose prequential log score is best on validation tasks; the choice is remembered."""
    chosen: dict[str, Method] = {}
    key = jax.random.key(TUNING_SEED)
    for name in names:
        options = list(candidates(capacity, model.size)[name].values())
        best = remembered(records, name)
        if best is None and num_tasks == 0:
            best = CHOSEN[name]
            records.add([Measurement(name, TUNED, None, float(best), None, num_particles)])
        elif best is None:
            run.say(f"tuning {name}")
            streams = tuning_streams(key, store(), num_tasks, length)
            keys = jax.random.split(jax.random.fold_in(key, 1), num_tasks)
            best, scores = choose(keys, options, model, streams, num_particles)
            records.add([Measurement(name, TUNED, None, float(best), None, num_particles, num_tasks, TUNING_SEED)])
            records.add([Measurement(name, "tuning score", i, s, seed=TUNING_SEED) for i, s in enumerate(scores)])
            run.tick()
        chosen[name] = options[best]
    return chosen
