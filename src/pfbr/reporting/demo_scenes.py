"""The scenes of the demonstration that are charts, tables and sentences: a regression, and a ship; computes nothing."""

from collections.abc import Sequence

import numpy as np

from pfbr.judging.demo.record import DemoRecord
from pfbr.judging.demo.tracking import BEACONS
from pfbr.reporting.parts import Chart, Chooser, Finding, Look, Part, Series, Table

LOOKS = {
    "data": Look("values", "#16181d", "#eef0f4"),
    "beacon": Look("beacons", "#b8860b", "#f0c24b"),
}
SHOWN_ROWS = (1, 5, 20)
NAMES = {
    "pfbr": "pfbr",
    "ibis": "IBIS",
    "exact": "exact draws",
    "smc": "bootstrap particle filter",
    "enkf": "ensemble Kalman filter",
    "beacon": "beacons",
}
ROOM = 0.25  # around ship and beacons, of their extent: what the map shows
WIDE = 1.645  # standard deviations on each side of a 90 % band


class Scene:
    """Heading, what it is about, what was found, and the parts that show it."""

    def __init__(self, title: str, lead: str, findings: Sequence[Finding], parts: Sequence[Part]):
        self.title, self.lead, self.findings, self.parts = title, lead, findings, parts


def regression_scene(record: DemoRecord) -> Scene:
    arrays, settings = record.arrays, record.settings
    num = len(arrays["years"])
    ours, rival = arrays["pfbr_error"], arrays["ibis_error"]
    seconds, compiled = settings["cpu_seconds"]["pfbr"]
    findings = [
        Finding(
            f"Off by {_rms(ours):.2f} posterior standard deviations over all {num} rows; {settings['num_particles']} "
            f"exact draws are off by {_rms(arrays['exact_error']):.2f}.",
            _rms(ours) < 2 * _rms(arrays["exact_error"]),
        ),
        Finding(f"IBIS with as many particles: {_rms(rival):.2f}.", _rms(rival) > _rms(ours)),
        Finding(f"The whole stream took {seconds:.2f} CPU seconds, {compiled:.0f} more to compile, once."),
    ]
    stages = [m for m in SHOWN_ROWS if m < num] + [num]
    charts: dict[tuple[str, ...], Chart] = {(_rows(m),): _line_chart(arrays, m) for m in stages}
    line = Chooser("The line so far", _band_note(), ("after",), charts, first=(_rows(num),))
    chart = Chart(
        "error of the posterior mean",
        "rows so far",
        "posterior standard deviations",
        [
            Series(name, range(1, num + 1), _numbers(arrays[f"{name}_error"]), label=NAMES[name])
            for name in ("pfbr", "ibis", "exact")
        ],
        y_scale="log",
    )
    error = Chooser(
        "How far off", "Mahalanobis distance from the exact mean over √3, after every row.", ("",), {("",): chart}
    )
    return Scene(
        "A newcomer’s regression",
        "A line through yearly values that nobody centred, its noise unknown, under vague priors: one row at a time, "
        "in any order, nothing tuned. The truth is exact: a sum over a grid of the noise.",
        findings,
        [line, error, _regression_table(arrays, stages)],
    )


def tracking_scene(record: DemoRecord) -> Scene:
    arrays, settings = record.arrays, record.settings
    counts, seconds = settings["particles"], settings["seconds_per_report"]
    names = list(counts)
    errors = {name: arrays[f"{name}_error"] for name in names}
    best = min(names, key=lambda name: np.nan_to_num(_rms(errors[name]), nan=np.inf))
    rows = [
        [
            NAMES[name],
            f"{counts[name]:,}",
            f"{1e3 * seconds[name]:.2f}",
            _number(np.median(errors[name]), 2),
            _off(errors[name]),
            _number(errors[name].max(), 1),
        ]
        for name in names
    ]
    table = Table(
        "Every rival in the same time",
        "Error of the mean, in standard deviations of the true posterior, over all reports.",
        ["method", "particles", "ms a report", "median", "root mean square", "worst report"],
        rows,
        names,
        frozenset({(names.index(best), 4)}),
    )
    others = ", ".join(f"{NAMES[n]} {_off(errors[n])} with {counts[n]:,} particles" for n in names if n != "pfbr")
    findings = [
        Finding(
            f"pfbr is off by {_rms(errors['pfbr']):.2f} standard deviations with {counts['pfbr']:,} particles; in the "
            f"same time: {others}.",
            best == "pfbr",
        )
    ]
    steps = range(1, len(errors["pfbr"]) + 1)
    over_time = Chart(
        "error of the posterior mean",
        "reports so far",
        "posterior standard deviations",
        [Series(name, steps, _numbers(errors[name]), label=NAMES[name]) for name in names],
        y_scale="log",
    )
    return Scene(
        "A ship, three beacons, four unknowns",
        "Position and velocity from sharp distances to one beacon at a time, at irregular times. Before a report the "
        "cloud is metres wide, the report is good to decimetres: most particles of a plain filter die.",
        findings,
        [
            Chooser(
                "The voyage",
                "Dots are posterior means, the line is where the ship was. What is far off is in the table alone.",
                ("",),
                {("",): _map(arrays, settings)},
            ),
            Chooser(
                "How far off",
                "Mahalanobis distance from the true mean over √4, after every report.",
                ("",),
                {("",): over_time},
            ),
            table,
        ],
    )


def _line_chart(arrays, m: int) -> Chart:
    years = np.linspace(arrays["years"].min(), arrays["years"].max(), 41)
    design = np.column_stack([np.ones_like(years), years])

    def band(name: str, label: str) -> Series:
        mean, cov = arrays[f"{name}_mean"][m - 1, :2].astype(float), arrays[f"{name}_cov"][m - 1, :2, :2].astype(float)
        spread = np.sqrt(np.maximum(np.einsum("yi,ij,yj->y", design, cov, design), 0.0))
        return Series(name, _numbers(years), _numbers(design @ mean), _numbers(WIDE * spread), label=label)

    seen = Series(
        "data", _numbers(arrays["years"][:m]), _numbers(arrays["values"][:m]), label="values so far", marks=True
    )
    low, high = arrays["values"].min(), arrays["values"].max()
    room = 0.6 * (high - low)
    return Chart(
        _rows(m),
        "year",
        "value",
        [band("truth", "the exact posterior"), band("pfbr", "pfbr"), seen],
        y_limits=(float(low - room), float(high + room)),
    )


def _map(arrays, settings) -> Chart:
    track = arrays["states"]
    around = np.concatenate([track[:, :2], BEACONS])
    low, high = around.min(axis=0), around.max(axis=0)
    room = ROOM * (high - low)

    def dots(name: str, places: np.ndarray) -> Series:
        # a mean far from ship and beacons would squeeze them: the table tells of it
        here = places[:, :2]
        places = places[np.all((here > low - room) & (here < high + room), axis=1)]
        return Series(name, _numbers(places[:, 0]), _numbers(places[:, 1]), label=NAMES[name], marks=True)

    return Chart(
        "the plane",
        "metres east",
        "metres north",
        [
            Series("truth", _numbers(track[:, 0]), _numbers(track[:, 1]), label="the ship"),
            *(dots(name, arrays[f"{name}_mean"]) for name in reversed(settings["particles"])),
            dots("beacon", np.asarray(BEACONS)),
        ],
    )


def _regression_table(arrays, stages: Sequence[int]) -> Table:
    def cells(name: str, m: int) -> list[str]:
        mean, std = arrays[f"{name}_mean"][m - 1], np.sqrt(np.diagonal(arrays[f"{name}_cov"][m - 1]))
        return [f"{a:.3g} ± {b:.2g}".replace("-", "−") for a, b in zip(mean, std, strict=True)]

    rows = [
        [f"{title}, {_rows(m)}", *cells(name, m)]
        for m in stages
        for name, title in (("truth", "exact"), ("pfbr", "pfbr"), ("ibis", "IBIS"))
    ]
    methods = ["truth", "pfbr", "ibis"] * len(stages)
    columns = ["mean ± standard deviation", "intercept", "slope, per year", "log sigma"]
    return Table("The same in numbers", "", columns, rows, methods)


def _rows(m: int) -> str:
    return f"{m} row{'s' if m > 1 else ''}"


def _band_note() -> str:
    return "Mean and 90 % band of the line, ours over the exact one; the scale is that of all values."


def _number(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if np.isfinite(value) else "–"


def _off(errors: np.ndarray) -> str:
    """The error over all reports; a method that ended in numbers that are none is said to diverge, and when."""
    lost = np.flatnonzero(~np.isfinite(errors))
    return f"diverges at report {lost[0] + 1}" if len(lost) else f"{_rms(errors):.2f}"


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(values, dtype=float))))


def _numbers(values: np.ndarray) -> list[float]:
    return np.asarray(values, float).tolist()
