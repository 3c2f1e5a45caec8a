"""What an experiment is: settings, a run that leaves records and can be killed, and a view of the records alone."""

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pfbr.errors import FileError
from pfbr.io.files import make_directory
from pfbr.io.records import SETTINGS, Measurement, Records
from pfbr.judging.evaluate import Notify
from pfbr.models.base import Model
from pfbr.paper.digits import PreparedDigits
from pfbr.reporting.parts import Page

WALL, CPU = "wall seconds", "CPU seconds"
RECORDS = "records"


@dataclasses.dataclass(frozen=True)
class Experiment:
    """An entry of the registry. `full` and `quick` are frozen dataclasses of one kind, each field with its reason."""

    name: str
    full: Any
    quick: Any
    run: Callable[["Run"], None]
    view: Callable[["Results"], Page]
    own_system: bool = False  # whether --system and --observations may replace the paper's
    own_data: bool = False  # whether it trains on what --data names


class Run:
    """What a run is given, and where it writes. Everything below `directory` belongs to it."""

    def __init__(
        self,
        experiment: Experiment,
        directory: Path,
        *,
        quick: bool = False,
        retrain: bool = False,
        seed: int = 0,
        system: Model | None = None,
        observations: np.ndarray | None = None,
        data: PreparedDigits | None = None,
        say: Callable[[str], None] = lambda message: None,
    ):
        self.experiment, self.directory = experiment, Path(directory)
        self.settings = experiment.quick if quick else experiment.full
        self.quick, self.retrain, self.seed = quick, retrain, seed
        self.system, self.observations, self.data, self.say = system, observations, data, say
        own = {
            "system": None if system is None else _fingerprint(system),
            "observations": None if observations is None else _fingerprint(observations),
            "data": None if data is None else {"images": data.num_images},
        }
        options = {"experiment": experiment.name, "quick": quick, "retrain": retrain, "seed": seed, **own}
        self._top = Records(self.directory, {**options, "settings": dataclasses.asdict(self.settings)})
        earlier = {m.method for m in self._top.measurements() if m.metric == WALL}
        self._session = f"session {len(earlier) + 1}"
        self._began = time.perf_counter(), time.process_time()

    def case(self, name: str, **facts: Any) -> Records:
        """Records of one part of the experiment (a dimension, a system); `facts` must agree when a run goes on."""
        return Records(self.directory / RECORDS / name, {"case": name, **facts})

    @property
    def operators(self) -> Path:
        """Where operators go that are trained in this run."""
        return make_directory(self.directory / "operators")

    def tick(self) -> None:
        """Write down how long this session has run; call it after each piece of work, a kill then loses little."""
        wall, cpu = time.perf_counter() - self._began[0], time.process_time() - self._began[1]
        self._top.add(Measurement(self._session, metric, None, value) for metric, value in ((WALL, wall), (CPU, cpu)))

    def progress(self, where: str = "") -> Notify:
        """What an evaluation tells, with the place in front of it; the clock is written down each time."""

        def notify(what: str, done: int, total: int) -> None:
            self.say(f"{where}{what} ({done}/{total})")
            self.tick()

        return notify


class Results:
    """The records of an experiment, read back; a view gets nothing else."""

    def __init__(self, directory: Path):
        self.directory = Path(directory)
        if not (self.directory / SETTINGS).is_file():
            raise FileError(f"{self.directory} holds no {SETTINGS}: it is not the directory of a run.")
        top = Records(self.directory)
        if "experiment" not in top.settings:
            raise FileError(f"{self.directory} holds the records of something else than `pfbr reproduce`.")
        self.options = top.settings  # what the run was called with
        self.settings: dict[str, Any] = top.settings["settings"]
        self._times = top.measurements()

    def case(self, name: str) -> Records:
        path = self.directory / RECORDS / name
        if not path.is_dir():
            raise FileError(
                f"{self.directory} has no records of {name!r} yet. Finish the run: {self.command}, which goes on "
                "where it stopped."
            )
        return Records(path)

    def cases(self) -> list[str]:
        """The parts that were measured, in the order of their names."""
        folder = self.directory / RECORDS
        return sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []

    @property
    def command(self) -> str:
        given = self.options
        words = ["pfbr reproduce", given["experiment"], "--out DIR"]
        words += ["--quick"] * given["quick"] + ["--retrain"] * given["retrain"]
        words += ["--system FILE.npz"] * (given["system"] is not None)
        words += ["--observations FILE.npy"] * (given["observations"] is not None)
        words += ["--data DIR"] * (given.get("data") is not None)
        return " ".join(words + ([f"--seed {given['seed']}"] if given["seed"] else []))

    def seconds(self, metric: str = WALL) -> float:
        """Over all sessions that it took."""
        return sum(m.value for m in self._times if m.metric == metric)


def _fingerprint(value: Model | np.ndarray) -> dict[str, Any]:
    """Enough to notice that a run goes on with other data."""
    if isinstance(value, np.ndarray):
        return {"shape": list(value.shape), "sum": float(value.sum())}
    arrays = {name: np.asarray(getattr(value, name)) for name in ("A", "B")}
    stds = {name: float(getattr(value, name)) for name in ("transition_std", "observation_std", "prior_std")}
    return {**{name: _fingerprint(array) for name, array in arrays.items()}, **stds}
