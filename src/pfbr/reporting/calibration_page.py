"""A calibration's records to one HTML page that needs no network; draws what was measured."""

from pathlib import Path

import numpy as np

from pfbr.judging.calibration.calibrate import Calibration
from pfbr.judging.calibration.uniformity import POINTS, ecdf
from pfbr.judging.calibration.verdict import COVERAGES, quantities
from pfbr.reporting.html import write_page
from pfbr.reporting.parts import Chart, Chooser, Finding, Look, Page, Series, Table

SHOWN_STAGES, SHOWN_COORDINATES = 7, 6
LEAST_SHOWN = 1e-12  # smaller p-values are drawn here
BAND, LINE, DATA = "band", "line", "data"
COLOURS = (
    ("#1f63d2", "#6ea8ff"),
    ("#d1541c", "#ff9a5c"),
    ("#2e8b3d", "#6fd07e"),
    ("#8e44ad", "#c58be0"),
    ("#b8860b", "#f0c24b"),
    ("#0c9a9a", "#43d3d0"),
)
LOOKS = {
    BAND: Look("where a right posterior stays", "#5a606b", "#a2a9b6", "2 5"),
    LINE: Look("refused below", "#b3261e", "#ff8a7a", "6 4"),
    DATA: Look(quantities(1)[-1], "#16181d", "#eef0f4", "2 3"),
    **{f"c{i}": Look("", light, dark) for i, (light, dark) in enumerate(COLOURS)},
}


def calibration_page(directory: Path) -> Path:
    """Draw `index.html` in the directory of a calibration, and return its path."""
    record = Calibration.load(directory)
    settings = record.settings
    lines = _lines(record.arrays["p_values"])
    whom = f"{settings.get('method', 'a method')} on {settings.get('spec', settings['model'])}"
    page = Page(
        title=f"Calibration: {whom}",
        lead="Unknowns and streams were drawn from the model, and each stream followed. If the posterior is right, the "
        "true unknown is one more draw of it: its rank among the particles is uniform at every stage.",
        findings=_findings(record),
        parts=[_chances(record, lines), _ranks(record, lines), _coverage(record, lines), _table(record)],
        figures={},
        facts=_facts(settings),
        looks=LOOKS,
    )
    return write_page(directory / "index.html", page)


def _lines(p: np.ndarray) -> list[tuple[int, str, str]]:
    """(column, look, label) of what is drawn: the coordinates with the smallest p-values, in order; the likelihood."""
    names = quantities(p.shape[1])
    worst = sorted(np.argsort(p[:, :-1].min(axis=0), kind="stable")[:SHOWN_COORDINATES].tolist())
    return [(j, f"c{i}", names[j]) for i, j in enumerate(worst)] + [(len(names) - 1, DATA, names[-1])]


def _findings(record: Calibration) -> list[Finding]:
    settings = record.settings
    found = [Finding(record.verdict, record.trusted), Finding(settings["advice"])]
    if settings["failed"] and not settings["streams_not_finite"]:
        failed = ", ".join(f"{name} at {count}" for name, count in settings["failed"].items())
        found.append(Finding(f"Not uniform: {failed} of {settings['length']} stages."))
    if "order_gap" in settings:
        found.append(
            Finding(
                f"Two orders of the same observations end {settings['order_gap']:.3f} posterior standard deviations "
                f"apart (root mean square); two runs of the same order with other draws {settings['noise_gap']:.3f}."
            )
        )
    return found


def _chances(record: Calibration, lines) -> Chooser:
    p = record.arrays["p_values"]
    stages = list(range(1, len(p) + 1))
    level = record.settings["level"]
    limit = level / p.size
    shown = np.maximum(p, LEAST_SHOWN)
    decades = int(np.ceil(-np.log10(min(shown.min(), limit))))
    lowest = 10.0 ** -(decades if decades <= 6 else 2 * np.ceil(decades / 2))  # so that the ticks end at 1
    series = [Series(look, stages, shown[:, j].tolist(), label=label) for j, look, label in lines]
    series.append(Series(LINE, stages, [limit] * len(stages), label=f"refused below {limit:.1g}"))
    chart = Chart("p-values", "observations so far", "p-value", series, y_scale="log", y_limits=(lowest, 1.0))
    note = (
        "The chance that ranks of a right posterior look at least as uneven, for each quantity and stage. One below "
        f"the dashed line refuses the method; a right one has any there {100 * level:.0f} % of the time, or less."
    )
    if p.min() < LEAST_SHOWN:
        note += f" Chances below {LEAST_SHOWN:.0e} are drawn there."
    if p.shape[1] - 1 > SHOWN_COORDINATES:
        note += f" Of {p.shape[1] - 1} coordinates those with the {SHOWN_COORDINATES} smallest p-values are shown."
    return Chooser("From which stage on not", note, ("",), {("all",): chart})


def _ranks(record: Calibration, lines) -> Chooser:
    points = np.arange(1, POINTS) / POINTS
    low, high = record.arrays["band_low"] - points, record.arrays["band_high"] - points
    curves = ecdf(record.arrays["ranks"])
    band = _between(points, low, high, LOOKS[BAND].label)
    reach = 1.05 * max(np.abs(end).max() for end in (low, high, curves - points[:, None, None]))
    charts: dict[tuple[str, ...], Chart] = {}
    for stage in _stages(record):
        drawn = [Series(k, points.tolist(), (curves[:, stage, j] - points).tolist(), label=n) for j, k, n in lines]
        title = f"after observation {stage + 1}"
        charts[(str(stage + 1),)] = Chart(
            title,
            f"rank, after observation {stage + 1}",
            "ECDF − uniform",
            [band, *drawn],
            y_limits=(-reach, reach),
            zero="uniform",
        )
    worst = str(int(record.arrays["p_values"].min(axis=1).argmin()) + 1)
    return Chooser(
        "Ranks of the truth",
        "The distribution of ranks minus a uniform one. A line above zero all along says that the posterior is too "
        "high, below zero too low; up first and then down that it is too narrow, down and then up too wide. The "
        "likelihood's line below zero says that particles fit the data worse than the truth does: too little is "
        "learned. Shown first: the stage with the smallest p-value.",
        ("after observation",),
        charts,
        first=(worst,),
    )


def _coverage(record: Calibration, lines) -> Chooser:
    coverage, streams = record.arrays["coverage"], record.settings["streams"]
    stages = list(range(1, coverage.shape[1] + 1))
    charts: dict[tuple[str, ...], Chart] = {}
    for nominal, found in zip(COVERAGES, coverage, strict=True):
        error = 2 * np.sqrt(nominal * (1 - nominal) / streams)
        ends = np.full(len(stages), nominal - error), np.full(len(stages), min(1.0, nominal + error))
        drawn = [Series(look, stages, found[:, j].tolist(), label=label) for j, look, label in lines[:-1]]
        wanted = [
            _between(stages, *ends, "± 2 standard errors"),
            Series(BAND, stages, [nominal] * len(stages), label="as it should be"),
        ]
        name = f"{100 * nominal:.0f} %"
        charts[(name,)] = Chart(name, "observations so far", f"truths in {name} intervals, share", [*wanted, *drawn])
    return Chooser(
        "Coverage of central intervals",
        f"The share of {streams} streams whose truth lay in the central interval. Below the band intervals are too "
        "narrow, above too wide; one in twenty points of a right posterior lies outside.",
        ("interval",),
        charts,
        first=("95 %",),
    )


def _between(x, low: np.ndarray, high: np.ndarray, label: str) -> Series:
    return Series(BAND, list(x), (0.5 * (low + high)).tolist(), (0.5 * (high - low)).tolist(), label=label, shade=True)


def _table(record: Calibration) -> Table:
    p, coverage = record.arrays["p_values"], record.arrays["coverage"].mean(axis=2)
    failed = set(record.settings["failed_stages"])
    rows = [
        [
            str(s + 1),
            f"{p[s].min():.2g}",
            "no" if s + 1 in failed else "yes",
            *(f"{100 * c:.1f} %" for c in coverage[:, s]),
        ]
        for s in _stages(record)
    ]
    columns = [
        "after observation",
        "smallest p-value",
        "uniform",
        *(f"in {100 * c:.0f} % intervals" for c in COVERAGES),
    ]
    return Table("Numbers", "Coverage is the mean over coordinates.", columns, rows)


def _stages(record: Calibration) -> list[int]:
    """Some along the stream, and the worst; from 0."""
    p = record.arrays["p_values"]
    spread = np.linspace(0, len(p) - 1, min(SHOWN_STAGES, len(p))).round().astype(int).tolist()
    return sorted({*spread, int(p.min(axis=1).argmin())})


def _facts(settings: dict) -> list[str]:
    facts = [
        f"{settings['streams']} simulated streams of {settings['length']} observations, {settings['num_particles']} "
        f"particles, seed {settings.get('seed', 'not recorded')}. Overall p-value {settings['p_value']:.2g}: the "
        "smallest of all, times their number."
    ]
    if settings["interrupted"]:
        facts.append("The run was stopped before all streams were done; this is of those that were.")
    if "command" in settings:
        facts.append(f"{settings['command']} ({settings['seconds']:.0f} s)")
    return [*facts, "Records: calibration.json, calibration.npz."]
