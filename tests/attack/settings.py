"""Settings of the wrong type, the wrong sign, or a size that no machine has."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

import pfbr
from pfbr.flow.settings import FlowSettings
from pfbr.judging.calibration.calibrate import CalibrationSettings, calibrate
from pfbr.judging.compare import compare
from pfbr.judging.model_check import CheckSettings, check_model
from pfbr.models import GaussianMean, GaussianMixture, LinearDynamics, LogisticRegression
from tests.attack.case import Case, refused

GROUP = "settings"
MODEL = GaussianMean(2)
STREAM = np.zeros((4, 2))
NOT_WHOLE: dict[str, Any] = {
    "a fraction": 1.5,
    "a text": "4",
    "None": None,
    "a truth": True,
    "a list": [4],
    "NaN": float("nan"),
}
NOT_WHOLE |= {"inf": float("inf"), "a whole float": 4.0, "an array": np.zeros(3), "complex": 2j, "negative": -1}
HUGE = 10**12

# Every whole number that a user can set, and how.
WHOLE: dict[str, Callable[[Any], Any]] = {
    "Session num_particles": lambda v: pfbr.Session(MODEL, num_particles=v),
    "Session history": lambda v: pfbr.Session(MODEL, history=v),
    "Session undo": lambda v: pfbr.Session(MODEL, undo=v),
    "run num_particles": lambda v: pfbr.run(MODEL, STREAM, num_particles=v),
    "run history": lambda v: pfbr.run(MODEL, STREAM, history=v),
    "init num_particles": lambda v: pfbr.init(0, "auto", MODEL, num_particles=v),
    "as_method history": lambda v: pfbr.as_method("auto", MODEL, history=v),
    "TrainingSettings steps": lambda v: pfbr.TrainingSettings(steps=v),
    "TrainingSettings num_particles": lambda v: pfbr.TrainingSettings(num_particles=v),
    "TrainingSettings length": lambda v: pfbr.TrainingSettings(length=v),
    "TrainingSettings batch": lambda v: pfbr.TrainingSettings(batch=v),
    "TrainingSettings segments": lambda v: pfbr.TrainingSettings(segments=v),
    "TrainingSettings validate_every": lambda v: pfbr.TrainingSettings(validate_every=v),
    "TrainingSettings validation_tasks": lambda v: pfbr.TrainingSettings(validation_tasks=v),
    "FlowSettings steps": lambda v: FlowSettings(steps=v),
    "FlowSettings max_steps": lambda v: FlowSettings(max_steps=v),
    "compare num_particles": lambda v: compare(MODEL, STREAM, ["prior"], num_particles=v),
    "compare truth_draws": lambda v: compare(MODEL, STREAM, ["prior"], truth_draws=v),
    "CheckSettings draws": lambda v: check_model(MODEL, settings=CheckSettings(draws=v)),
    "CheckSettings cases": lambda v: check_model(MODEL, settings=CheckSettings(cases=v)),
    "CalibrationSettings streams": lambda v: calibrate(MODEL, settings=CalibrationSettings(streams=v)),
    "CalibrationSettings length": lambda v: calibrate(MODEL, settings=CalibrationSettings(length=v)),
    "CalibrationSettings num_particles": lambda v: calibrate(MODEL, settings=CalibrationSettings(num_particles=v)),
}
MAY_BE_NONE = {"TrainingSettings steps"}
# What would take more memory than there is: the message says how much.
TOO_LARGE: dict[str, Callable[[], Any]] = {
    "Session num_particles": lambda: pfbr.Session(MODEL, num_particles=HUGE),
    "Session history": lambda: pfbr.Session(MODEL, history=HUGE),
    "run num_particles": lambda: pfbr.run(MODEL, STREAM, num_particles=HUGE),
    "run num_particles times rows": lambda: pfbr.run(MODEL, np.zeros((10**5, 2)), num_particles=10**8),
    "init num_particles": lambda: pfbr.init(0, "auto", MODEL, num_particles=HUGE),
    "init history": lambda: pfbr.init(0, "auto", MODEL, history=HUGE),
    "fit num_particles": lambda: _fit(num_particles=HUGE),
    "fit batch": lambda: _fit(batch=HUGE),
    "fit length": lambda: _fit(length=HUGE),
    "fit validation_tasks": lambda: _fit(validation_tasks=HUGE),
    "compare num_particles": lambda: compare(MODEL, STREAM, ["prior"], num_particles=HUGE),
    "compare truth_draws": lambda: compare(MODEL, STREAM, ["prior"], truth_draws=HUGE),
    "check draws": lambda: check_model(MODEL, settings=CheckSettings(draws=HUGE)),
    "calibrate streams": lambda: calibrate(MODEL, settings=CalibrationSettings(streams=HUGE)),
    "calibrate num_particles": lambda: calibrate(MODEL, settings=CalibrationSettings(num_particles=HUGE)),
    "calibrate length": lambda: calibrate(MODEL, settings=CalibrationSettings(length=HUGE)),
    "dim": lambda: pfbr.Session(GaussianMean(HUGE)),
}
KEYS: dict[str, Any] = {
    "negative": -1,
    "2⁶⁴": 2**64,
    "10⁴⁰": 10**40,
    "a fraction": 0.5,
    "a text": "0",
    "None": None,
    "a truth": True,
}
KEYS |= {
    "a list": [0, 1],
    "NumPy's generator": np.random.default_rng(0),
    "an array of floats": np.zeros(2),
    "NaN": float("nan"),
}
KEYS |= {
    "two keys": jax.random.split(jax.random.key(0)),
    "three numbers": jax.numpy.zeros(3, jax.numpy.uint32),
    "a class": jax.random.key,
}
METHODS: dict[str, Any] = {
    "a name that is none": "atuo",
    "an empty name": "",
    "None": None,
    "a number": 3,
    "a class": pfbr.Operator,
}
METHODS |= {
    "a file that is none": "none.pfbr",
    "a directory": "/",
    "a list": ["auto"],
    "a function": len,
    "bytes": b"auto",
    "a long name": "a" * 5000,
}
METHODS |= {"a name with a NUL": "au\0to.pfbr", "a text file": __file__}


def _fit(**settings: Any) -> Any:
    return pfbr.fit(MODEL, settings=pfbr.TrainingSettings(steps=1, **settings), progress=False)


OTHER: dict[str, tuple[Callable[[], Any], str]] = {
    "TrainingSettings minutes a text": (lambda: pfbr.TrainingSettings(minutes="5"), "minutes"),
    "TrainingSettings minutes NaN": (lambda: pfbr.TrainingSettings(minutes=float("nan")), "minutes"),
    "TrainingSettings minutes negative": (lambda: pfbr.TrainingSettings(minutes=-1), "minutes"),
    "TrainingSettings minutes inf": (lambda: pfbr.TrainingSettings(minutes=float("inf")), "minutes"),
    "TrainingSettings learning_rate a text": (lambda: pfbr.TrainingSettings(learning_rate="1"), "learning_rate"),
    "TrainingSettings learning_rate negative": (lambda: pfbr.TrainingSettings(learning_rate=-1.0), "learning_rate"),
    "TrainingSettings learning_rate NaN": (lambda: pfbr.TrainingSettings(learning_rate=float("nan")), "learning_rate"),
    "TrainingSettings clip zero": (lambda: pfbr.TrainingSettings(clip=0.0), "clip"),
    "TrainingSettings max_skipped 2": (lambda: pfbr.TrainingSettings(max_skipped=2.0), "max_skipped"),
    "TrainingSettings max_skipped a text": (lambda: pfbr.TrainingSettings(max_skipped="x"), "max_skipped"),
    "TrainingSettings priors": (lambda: pfbr.TrainingSettings(priors="mine"), "priors"),
    "TrainingSettings priors a list": (lambda: pfbr.TrainingSettings(priors=["model"]), "priors"),
    "TrainingSettings through_stages a text": (lambda: pfbr.TrainingSettings(through_stages="no"), "through_stages"),
    "FlowSettings solver": (lambda: FlowSettings(solver="euler"), "solver"),
    "FlowSettings solver a number": (lambda: FlowSettings(solver=3), "solver"),
    "FlowSettings solver a list": (lambda: FlowSettings(solver=["heun"]), "solver"),
    "FlowSettings tolerance negative": (lambda: FlowSettings(tolerance=-1.0), "tolerance"),
    "FlowSettings tolerance a text": (lambda: FlowSettings(tolerance="1e-3"), "tolerance"),
    "FlowSettings tolerance NaN": (lambda: FlowSettings(tolerance=float("nan")), "tolerance"),
    "FlowSettings gradient": (lambda: FlowSettings(gradient="none"), "gradient"),
    "fit minutes a text": (lambda: pfbr.fit(MODEL, minutes="5"), "minutes"),
    "fit operator": (lambda: pfbr.fit(MODEL, minutes=1, operator="best"), "operator"),
    "fit operator a number": (lambda: pfbr.fit(MODEL, minutes=1, operator=3), "operator"),
    "fit objective": (lambda: pfbr.fit(MODEL, minutes=1, objective="loss"), "objective"),
    "fit objective a number": (lambda: pfbr.fit(MODEL, minutes=1, objective=3), "objective"),
    "fit settings a dict": (lambda: pfbr.fit(MODEL, settings={"steps": 3}), "settings"),
    "fit resume without checkpoint": (lambda: pfbr.fit(MODEL, minutes=1, resume=True), "checkpoint"),
    "fit architecture": (lambda: pfbr.fit(MODEL, minutes=1, architecture={"widht": 3}), "settings|widht"),
    "fit architecture a text": (lambda: pfbr.fit(MODEL, minutes=1, architecture="wide"), "architecture"),
    "fit architecture width a text": (
        lambda: pfbr.fit(MODEL, minutes=1, architecture={"width": "8"}),
        "width|settings",
    ),
    "fit operator with nothing to learn": (lambda: pfbr.fit(MODEL, minutes=1, operator="gaussian"), "nothing to learn"),
    "fit checkpoint a number": (lambda: pfbr.fit(MODEL, minutes=1, checkpoint=3), "checkpoint"),
    "compare truth": (lambda: compare(MODEL, STREAM, ["prior"], truth="grid"), "truth"),
    "compare without methods": (lambda: compare(MODEL, STREAM, []), "no method"),
    "compare a method that is none": (lambda: compare(MODEL, STREAM, ["kalman"]), "kalman"),
    "compare methods a text": (lambda: compare(MODEL, STREAM, "auto"), "methods"),
    "compare minutes NaN": (lambda: compare(MODEL, STREAM, ["prior"], minutes=float("nan")), "minutes"),
    "compare minutes a text": (lambda: compare(MODEL, STREAM, ["prior"], minutes="2"), "minutes"),
    "GaussianMean std negative": (lambda: GaussianMean(2, -1.0), "prior_std"),
    "GaussianMean std NaN": (lambda: GaussianMean(2, float("nan")), "prior_std"),
    "GaussianMean std a text": (lambda: GaussianMean(2, 1.0, "3"), "observation_std"),
    "GaussianMean dim a text": (lambda: GaussianMean("2"), "dim"),
    "GaussianMean dim zero": (lambda: GaussianMean(0), "dim"),
    "GaussianMean dim a fraction": (lambda: GaussianMean(2.5), "dim"),
    "GaussianMixture std zero": (lambda: GaussianMixture(0.0), "prior_std"),
    "GaussianMixture std inf": (lambda: GaussianMixture(1.0, float("inf")), "observation_std"),
    "LogisticRegression dim negative": (lambda: LogisticRegression(-2), "dim"),
    "LogisticRegression std": (lambda: LogisticRegression(2, -1.0), "prior_std"),
    "LinearDynamics A a vector": (lambda: LinearDynamics(np.zeros(2), np.eye(2)), "A"),
    "LinearDynamics B of another width": (lambda: LinearDynamics(np.eye(2), np.eye(3)), "B"),
    "LinearDynamics A NaN": (lambda: LinearDynamics(np.full((2, 2), np.nan), np.eye(2)), "A"),
    "LinearDynamics std zero": (lambda: LinearDynamics(np.eye(2), np.eye(2), transition_std=0.0), "transition_std"),
    "LinearDynamics random dim": (lambda: LinearDynamics.random(0, 0), "dim"),
    "LinearDynamics random seed": (lambda: LinearDynamics.random(-1, 2), "seed"),
    "load a number": (lambda: pfbr.load(3), "path|file"),
    "load None": (lambda: pfbr.load(None), "path|file"),
    "save a number": (lambda: pfbr.save("x.pfbr", 3), "only operators|int"),
    "pretrained that is none": (lambda: pfbr.pretrained("plane"), "plane"),
    "pretrained a number": (lambda: pfbr.pretrained(3), "3"),
    "interval upside down": (lambda: pfbr.interval(2, 1), "interval|below"),
    "interval of NaN": (lambda: pfbr.interval(float("nan"), 1), "interval|finite"),
    "interval of texts": (lambda: pfbr.interval("a", "b"), "interval|number"),
    "simplex of one": (lambda: pfbr.simplex(1), "simplex|at least"),
    "simplex a text": (lambda: pfbr.simplex("3"), "simplex|whole"),
    "ordered of zero": (lambda: pfbr.ordered(0), "ordered|at least"),
    "correlation of a fraction": (lambda: pfbr.correlation(2.5), "correlation|whole"),
}


def _cases() -> list[Case]:
    found = []
    for name, build in WHOLE.items():
        field = name.split()[-1]
        for kind, value in NOT_WHOLE.items():
            if kind == "None" and name in MAY_BE_NONE:
                continue
            found.append(refused(GROUP, f"{name} is {kind}", lambda b=build, v=value: b(v), f"`{field}`"))
    found += [refused(GROUP, f"{name} of 10¹²", build, "[kMGTPE]B|memory|bytes") for name, build in TOO_LARGE.items()]
    for name, key in KEYS.items():
        found.append(refused(GROUP, f"a key that is {name}", lambda k=key: pfbr.Session(MODEL, key=k), "key|seed"))
    for name, method in METHODS.items():
        found.append(
            refused(
                GROUP,
                f"a method that is {name}",
                lambda m=method: pfbr.Session(MODEL, method=m),
                "method|operator|file|directory",
            )
        )
    return found + [refused(GROUP, name, attempt, says) for name, (attempt, says) in OTHER.items()]


CASES = _cases()
