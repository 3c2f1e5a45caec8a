"""The trained methods of the experiments: from the package, or made again with the same settings and seed."""

import dataclasses
import math
import time
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax

from pfbr.baselines import AESMC, fit_aesmc
from pfbr.baselines.proposals import new_proposal
from pfbr.inference.method import Method
from pfbr.inference.operator_file import load, save
from pfbr.io import containers
from pfbr.models.base import Model
from pfbr.paper.contract import Run
from pfbr.training import TrainingSettings, fit
from pfbr.training.tasks import Family

AESMC_KINDS = {"aesmc-mlp": "mlp", "aesmc-gru": "gru"}
Families = Callable[[], tuple[Family | None, Family | None]]  # to train on and to validate on; None: the model's own


class Trained(NamedTuple):
    """A method, the seconds of its training on one core, and where it comes from, in words."""

    method: Method
    seconds: float
    origin: str


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How a method is trained: the name of its file, its kind (an operator's, or "aesmc-mlp", "aesmc-gru"), the steps.

    A number of steps, unlike minutes, makes the same operator again. `settings` are those of `TrainingSettings`, or of
    `fit_aesmc`.
    """

    file: str
    kind: str
    steps: int
    settings: Mapping[str, Any]
    seed: int = 0
    objective: str = "auto"
    architecture: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    quick_steps: int = 30  # in a quick run: enough to see that it works, not how well
    package: str = "pfbr.paper.operators"  # where the file lies that comes with pfbr

    def train(
        self, model: Model, path: Path, *, families: Families = lambda: (None, None), progress: bool = False
    ) -> None:
        """Train, and write the file."""
        if self.kind in AESMC_KINDS:
            self._train_aesmc(model, path)
            return
        family, validation = families()
        operator, _ = fit(
            model,
            key=self.seed,
            operator=self.kind,
            objective=self.objective,
            settings=TrainingSettings(steps=self.steps, **self.settings),
            family=family,
            validation_family=validation,
            architecture=dict(self.architecture),
            progress=progress,
        )
        save(path, operator)

    def _train_aesmc(self, model: Model, path: Path) -> None:
        started, kind = time.perf_counter(), AESMC_KINDS[self.kind]
        fitted = fit_aesmc(
            jax.random.key(self.seed), model, kind=kind, minutes=math.inf, max_steps=self.steps, **self.settings
        )
        header = {
            "kind": self.kind,
            "steps": self.steps,
            "seed": self.seed,
            "settings": dict(self.settings),
            "width": self.settings.get("width", 64),
            "seconds": round(time.perf_counter() - started, 1),
            "validation": [[step, round(seconds, 1), score] for step, seconds, score in fitted.progress],
        }
        containers.write(path, "aesmc", header, containers.named_leaves(fitted.method))

    def read(self, model: Model, path: Path) -> tuple[Method, float]:
        """The method in a file, and how long it was trained."""
        if self.kind not in AESMC_KINDS:
            operator = load(path)
            return operator, float(operator.provenance.document["seconds"])
        header, arrays = containers.read(path, "aesmc")

        def build() -> AESMC:
            kind = AESMC_KINDS[header["kind"]]
            return AESMC(new_proposal(jax.random.key(0), model, kind, width=header["width"]))  # type: ignore[arg-type]

        return containers.filled(eqx.filter_eval_shape(build), arrays, path), float(header["seconds"])


def obtain(
    run: Run,
    recipe: Recipe,
    model: Model,
    *,
    families: Families = lambda: (None, None),
    own_model: bool = False,
) -> Trained:
    """The method of a recipe: the one that comes with pfbr, unless the run trains again or the model is a user's own.

    What a run has trained stays in its directory; a killed run does not train it twice.
    """
    if not (run.retrain or own_model):
        with resources.as_file(resources.files(recipe.package) / f"{recipe.file}.pfbr") as path:
            method, seconds = recipe.read(model, path)
        return Trained(method, seconds, "comes with pfbr")
    path = run.operators / f"{recipe.file}.pfbr"
    if run.quick:
        recipe = dataclasses.replace(recipe, steps=min(recipe.steps, recipe.quick_steps))
    if not path.is_file():
        run.say(f"training {recipe.file} ({recipe.steps} steps)")
        recipe.train(model, path, families=families)
        run.tick()
    method, seconds = recipe.read(model, path)
    return Trained(method, seconds, f"trained in this run, {recipe.steps} steps")
