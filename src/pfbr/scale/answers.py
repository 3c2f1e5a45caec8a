"""What is told of each row of a keyed stream: columns of numbers with plain names, and an error where there is one."""

import dataclasses
import re
from typing import Any

import jax
import numpy as np

from pfbr.errors import InputError
from pfbr.inference.draws import Draws
from pfbr.inference.frame_trace import QUANTILES, summaries
from pfbr.inference.info import FIELDS, Info
from pfbr.models.base import Model, has_parameters
from pfbr.models.unknowns import Unknowns
from pfbr.particles.particles import Particles

ALWAYS = ("ess", "flagged", "log_predictive", "log_evidence")


@dataclasses.dataclass(frozen=True)
class Answers:
    """The columns: `mean_NAME`, `std_NAME`, `q5_NAME` … of each unknown, `ess`, `flagged`, `log_predictive`,
    `log_evidence` (of the stream so far), what is named in `also`, `stage`, and `error`."""

    model: Model
    quantiles: tuple[float, ...] = QUANTILES
    also: tuple[str, ...] = ()

    def __post_init__(self):
        for name in self.also:
            if name not in FIELDS:
                raise InputError(f"`also` names what a step says of itself, out of {', '.join(FIELDS)}; got {name!r}.")
        for q in self.quantiles:
            if not 0 <= q <= 1:
                raise InputError(f"`quantiles` must lie between 0 and 1; got {q}.")

    @property
    def told(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*ALWAYS, *self.also)))

    @property
    def numbers(self) -> list[str]:
        """The names of the summaries, in order."""
        points = np.zeros((1, 2, int(self.model.dim)))
        parameters = None
        if has_parameters(self.model):
            shapes = jax.eval_shape(self.model.sample_parameters, jax.random.key(0))  # type: ignore[attr-defined]
            parameters = jax.tree.map(lambda leaf: np.zeros((1, 2, *leaf.shape)), shapes)
        return list(self.summaries(points, np.zeros((1, 2)), parameters))

    def summaries(self, points: np.ndarray, log_weights: np.ndarray, parameters: Any) -> dict[str, np.ndarray]:
        unknowns = Unknowns.of(self.model)
        labels = [f"x[{i}]" for i in range(points.shape[-1])] if unknowns is None else unknowns.labels()
        draws = Draws.of(points, log_weights, unknowns)
        found = summaries("", draws, labels, self.quantiles)
        if parameters is not None:
            found |= summaries("parameters.", Draws(parameters, draws.weights), None, self.quantiles)
        return {plain(name): values for name, values in found.items()}

    def table(self, length: int) -> "Table":
        return Table(self, length)


class Table:
    """Rows that are filled in as they are known; NaN until then."""

    def __init__(self, answers: Answers, length: int):
        self._answers, self._length = answers, length
        self.errors: dict[int, str] = {}
        self._found: dict[str, np.ndarray] = {}
        self._stages = np.zeros(length, np.int64)

    def put(
        self, rows: np.ndarray, particles: Particles, parameters: Any, info: Info, evidence: np.ndarray, stages: Any
    ) -> None:
        """What is known of these rows, which stand first in the arrays: those may be longer, for few sizes are ever
        compiled."""
        points, weights = np.asarray(particles.points), np.asarray(particles.log_weights)
        values = self._answers.summaries(points, weights, parameters)
        values |= {name: getattr(info, name) for name in self._answers.told if getattr(info, name) is not None}
        values["log_evidence"] = evidence
        for name, column in values.items():
            room = self._found.setdefault(name, np.full(self._length, np.nan))
            room[rows] = np.asarray(column, dtype=float)[: len(rows)]
        self._stages[rows] = stages

    def columns(self) -> dict[str, np.ndarray]:
        """One value for each row; a row with an error tells nothing else."""
        wrong = np.array(sorted(self.errors), np.int64)
        empty = np.full(self._length, np.nan)
        found = {name: self._found.get(name, empty).copy() for name in (*self._answers.numbers, *self._answers.told)}
        for column in found.values():
            column[wrong] = np.nan
        self._stages[wrong] = 0
        error = np.full(self._length, None, dtype=object)
        for row, why in self.errors.items():
            error[row] = why
        return found | {"stage": self._stages, "error": error}


def plain(name: str) -> str:
    """mean.beta[0,1] as mean_beta_0_1: a name that SQL takes as it is."""
    return re.sub(r"\W+", "_", name).strip("_")
