"""The methods of the logistic-regression experiments: operators from the package or trained again, rivals tuned."""

import json
from collections.abc import Callable, Sequence
from importlib import resources
from typing import Any, NamedTuple

import jax
import numpy as np

from pfbr.baselines import IBIS, SGLD, MirrorDescent, NonparametricVI, OnePassSMC, StreamingSVI
from pfbr.baselines.one_by_one import OneByOne
from pfbr.inference import operator_file as checkpoint
from pfbr.inference.method import Method
from pfbr.inference.operator import Operator
from pfbr.io.records import Measurement, Records
from pfbr.models.minibatch import MiniBatch
from pfbr.paper.contract import Run
from pfbr.paper.digit_judging import choose
from pfbr.paper.digit_tasks import tuning_streams
from pfbr.paper.digits.rotations import RotatedDigits
from pfbr.paper.judging import TUNED, TUNING_SEED
from pfbr.training import TrainingSettings, fit

# Even draws are better, but all methods shall start from the same particles, and the rivals' are independent.
ARCHITECTURE: dict[str, dict[str, Any]] = {
    "informed": {"qmc": False},
    "paper": {"qmc": False, "feed": "mean", "time": "fixed"},
}
FULL_STEPS, QUICK_STEPS = 700, 40  # 700: a quarter of an hour on one busy core; 40: enough to see that it works

# What the full run chose (3 validation tasks of 20 batches, 256 particles), for runs that do not tune.
CHOSEN = {"smc-one-pass": 3, "svi": 1, "sgld": 2, "pmd": 8, "npv": 5, "ibis": 1}


class Shipped(NamedTuple):
    """An operator, the seconds of its training, and where it comes from, in words."""

    operator: Operator
    seconds: float
    origin: str


def training_settings(steps: int, **changes: Any) -> TrainingSettings:
    """Segments of eight updates in streams of 32; few particles, but enough to know a covariance in 51 dimensions."""
    options: dict[str, Any] = {
        "objective": "predictive",
        "num_particles": 128,
        "length": 8,
        "segments": 4,
        "batch": 4,
        "learning_rate": 1e-2,
        "validate_every": 100,
        "validation_tasks": 16,
    }
    return TrainingSettings(steps=steps, **(options | changes))


def train(
    seed: int, stores: tuple[RotatedDigits, RotatedDigits], settings: TrainingSettings, *, kind: str = "informed", **how
) -> Operator:
    """Learn an operator over rotations of the digits in a store; the other store judges it."""
    family, validation = stores
    operator, _ = fit(
        jax.random.key(seed),
        family.model,
        operator=kind,
        settings=settings,
        family=family,
        validation_family=validation,
        architecture=ARCHITECTURE[kind],
        **how,
    )
    return operator


def obtain(run: Run, name: str, make_stores, *, kind: str = "informed", seed: int = 0, **changes: Any) -> Shipped:
    """The operator of a name: shipped, unless the run trains again; what it has trained stays in its directory."""
    steps = QUICK_STEPS if run.quick else FULL_STEPS
    origin = f"trained in this run, {steps} steps"
    if run.retrain:
        path = run.operators / f"{name}.pfbr"
        if not path.is_file():
            run.say(f"training {name} ({steps} steps)")
            trained = train(seed, make_stores(), training_settings(steps, **changes), kind=kind, progress=False)
            checkpoint.save(path, trained)
            run.tick()
        operator = checkpoint.load(path)
    else:
        with resources.as_file(resources.files("pfbr.paper.operators") / f"{name}.pfbr") as path:
            operator = checkpoint.load(path)
        origin = "shipped with the package"
    return Shipped(operator, float(json.loads(operator.provenance)["seconds"]), origin)


def rival_candidates(capacity: int, batch: int) -> dict[str, dict[str, Method]]:
    """Settings to choose from, in words. Rivals that store data get room for `capacity` batches, all that there are.

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


def tuned_rivals(
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
    """Each rival with the setting whose online log score is best on validation tasks; the choice is remembered."""
    known = {m.method: int(m.value) for m in records.measurements() if m.metric == TUNED}
    candidates = {name: list(c.values()) for name, c in rival_candidates(capacity, model.size).items() if name in names}
    key = jax.random.key(TUNING_SEED)
    for name, options in candidates.items():
        if name not in known and num_tasks == 0:
            known[name] = CHOSEN[name]
            records.add([Measurement(name, TUNED, None, float(CHOSEN[name]), None, num_particles)])
        elif name not in known:
            run.say(f"tuning {name}")
            streams = tuning_streams(key, store(), num_tasks, length)
            keys = jax.random.split(jax.random.fold_in(key, 1), num_tasks)
            known[name], scores = choose(keys, options, model, streams, num_particles)
            records.add(
                [Measurement(name, TUNED, None, float(known[name]), None, num_particles, num_tasks, TUNING_SEED)]
            )
            records.add([Measurement(name, "tuning score", i, s, seed=TUNING_SEED) for i, s in enumerate(scores)])
            run.tick()
    return {name: candidates[name][known[name]] for name in candidates}


def shared_keys(seed: int, num: int):
    """A key for each task, the same for every method: they start from the same particles."""
    return jax.random.split(jax.random.key(np.uint32(seed)), num)
