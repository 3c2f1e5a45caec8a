"""The trained methods of the experiments: from the package, or made again with the same settings and seed."""

import dataclasses
import json
import math
import time
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from pfbr.baselines import AESMC, fit_aesmc
from pfbr.baselines.proposals import new_proposal
from pfbr.inference import operator_file as checkpoint
from pfbr.inference.method import Method
from pfbr.io import containers as files
from pfbr.models.base import Model
from pfbr.paper.contract import Run
from pfbr.training import TrainingSettings, fit
from pfbr.training.tasks import Family

QUICK_STEPS = 30  # of a method that has to be trained in a quick run: enough to see that it works, not how well
AESMC_KINDS = {"aesmc-mlp": "mlp", "aesmc-gru": "gru"}


class Trained(NamedTuple):
    """A method, the seconds of its training on one core, and where it comes from, in words."""

    method: Method
    seconds: float
    origin: str


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How a method is trained: the name of its file, its kind ("paper", "auto", "aesmc-mlp", "aesmc-gru"), the steps.

    A number of steps, unlike minutes, makes the same operator again. `settings` are those of `TrainingSettings`, or of
    `fit_aesmc`.
    """

    file: str
    kind: str
    steps: int
    settings: Mapping[str, Any]
    seed: int = 0

    def train(self, model: Model, path: Path, *, family: Family | None = None, steps: int | None = None) -> None:
        """Train, and write the file."""
        key, steps = jax.random.key(self.seed), steps or self.steps
        if self.kind in AESMC_KINDS:
            started = time.perf_counter()
            fitted = fit_aesmc(
                key, model, kind=AESMC_KINDS[self.kind], minutes=math.inf, max_steps=steps, **self.settings
            )
            header = {
                "kind": self.kind,
                "steps": steps,
                "seed": self.seed,
                "settings": dict(self.settings),
                "width": self.settings.get("width", 64),
                "seconds": round(time.perf_counter() - started, 1),
                "validation": [[step, round(seconds, 1), score] for step, seconds, score in fitted.progress],
            }
            leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(eqx.filter(fitted.method, eqx.is_array))]
            files.write(path, "aesmc", header, leaves)
            return
        settings = TrainingSettings(steps=steps, **self.settings)
        operator, _ = fit(key, model, operator=self.kind, settings=settings, family=family, progress=False)
        checkpoint.save(path, operator)

    def read(self, model: Model, path: Path) -> tuple[Method, float]:
        """The method in a file, and how long it was trained."""
        if self.kind in AESMC_KINDS:
            header, arrays = files.read(path, "aesmc")

            def build() -> AESMC:
                kind = AESMC_KINDS[header["kind"]]
                return AESMC(new_proposal(jax.random.key(0), model, kind, width=header["width"]))  # type: ignore[arg-type]

            return checkpoint.filled(eqx.filter_eval_shape(build), arrays, path), float(header["seconds"])
        operator = checkpoint.load(path)
        return operator, float(json.loads(operator.provenance)["seconds"])


def obtain(run: Run, recipe: Recipe, model: Model, *, family: Family | None = None, own_model: bool = False) -> Trained:
    """The method of a recipe: shipped, unless the run trains again or `own_model` is one the package knows nothing of.

    What a run has trained stays in its directory; a killed run does not train it twice.
    """
    if not (run.retrain or own_model):
        with resources.as_file(resources.files("pfbr.paper.operators") / f"{recipe.file}.pfbr") as path:
            method, seconds = recipe.read(model, path)
        return Trained(method, seconds, "shipped with the package")
    path = run.operators / f"{recipe.file}.pfbr"
    steps = min(recipe.steps, QUICK_STEPS) if run.quick else recipe.steps
    if not path.is_file():
        run.say(f"training {recipe.file} ({steps} steps)")
        recipe.train(model, path, family=family, steps=steps)
        run.tick()
    method, seconds = recipe.read(model, path)
    return Trained(method, seconds, f"trained in this run, {steps} steps")
