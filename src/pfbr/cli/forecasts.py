"""A forecast as a table for a file: rows for people, named arrays for programs."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

from pfbr.cli.posteriors import named
from pfbr.errors import InputError
from pfbr.inference.draws import Draws
from pfbr.inference.forecast import Forecast
from pfbr.io.files import strict, write_json, write_text
from pfbr.io.records import write_npz

SUFFIXES = (".csv", ".json", ".npz")


def parts(forecast: Forecast, observes: bool) -> dict[str, Draws]:
    """What is forecast, by name."""
    return {"state": forecast.states} | ({"observation": forecast.observations} if observes else {})


def as_csv(forecast: Forecast, levels: np.ndarray, *, observes: bool) -> str:
    """One row for each number at each time."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["step", "time", "of", "name", "mean", "std", *(f"q{level:g}" for level in levels)])
    for what, draws in parts(forecast, observes).items():
        for name, columns in _columns(what, draws, levels):
            for h, values in enumerate(columns):
                writer.writerow([h + 1, _time(forecast.times[h]), what, name, *(f"{value:.7g}" for value in values)])
    return text.getvalue()


def write(path: Path, forecast: Forecast, levels: np.ndarray, *, observes: bool) -> None:
    """By the file's suffix."""
    if path.suffix == ".csv":
        write_text(path, as_csv(forecast, levels, observes=observes))
    elif path.suffix == ".json":
        write_json(path, as_json(forecast, levels, observes))
    else:
        write_npz(path, _as_arrays(forecast, levels, observes))


def checked_levels(text: str) -> np.ndarray:
    """Quantiles as they are written on the command line."""
    try:
        levels = np.array([float(part) for part in text.split(",") if part.strip()])
    except ValueError:
        raise InputError(f"--quantiles are numbers between 0 and 1 with commas between; got {text!r}.") from None
    if not levels.size or not np.all((levels >= 0) & (levels <= 1)):
        raise InputError(f"--quantiles are numbers between 0 and 1 with commas between; got {text!r}.")
    return levels


def _columns(what: str, draws: Draws, levels: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Name and (h, 2 + levels) numbers of each component."""
    mean, std, quantile = draws.mean(), draws.std(), draws.quantile(levels)
    stem = {"state": "x", "observation": "y"}[what]
    for (name, m), s, q in zip(named(stem, mean).items(), jax.tree.leaves(std), jax.tree.leaves(quantile), strict=True):
        label = name.removeprefix("x.")
        for index in np.ndindex(m.shape[1:]):
            at = (slice(None), *index)
            shown = label + (f"[{','.join(map(str, index))}]" if index else "")
            yield shown, np.stack([m[at], s[at], *(one[at] for one in q)], axis=1)


def _as_arrays(forecast: Forecast, levels: np.ndarray, observes: bool) -> dict[str, np.ndarray]:
    arrays = {"times": np.array([_time(one) for one in forecast.times]), "quantiles": levels}
    for what, draws in parts(forecast, observes).items():
        told = {"mean": draws.mean(), "std": draws.std(), "quantile": draws.quantile(levels), "samples": draws.samples}
        for how, tree in told.items():
            arrays |= named(f"{what}.{how}", tree)
    return arrays


def as_json(forecast: Forecast, levels: np.ndarray, observes: bool) -> Any:
    """Times, quantiles asked for, and means, spreads and quantiles of each part; lists lead with the step."""
    plain = lambda tree: jax.tree.map(lambda leaf: np.asarray(leaf).tolist(), tree)
    told: dict[str, Any] = {"times": [_time(one) for one in forecast.times], "quantiles": levels.tolist()}
    for what, draws in parts(forecast, observes).items():
        told[what] = {"mean": plain(draws.mean()), "std": plain(draws.std()), "quantile": plain(draws.quantile(levels))}
    return strict(told)


def _time(value: Any) -> Any:
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return str(value) if isinstance(value, np.datetime64) else float(value)
