"""A calibration's records to one HTML page that needs no network; draws what was measured."""

import html
import io
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from pfbr.calibration import COVERAGES, ECDF_POINTS, Calibration, ecdf
from pfbr.figures import COLOURS, STYLE

MAX_COORDINATES = 6
SHOWN_STAGES = 4
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>pfbr calibration</title><style>
body{{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#16181d;background:#fff}}
.verdict{{border-left:.4rem solid {colour};padding:.6rem 1rem;font-size:1.15rem;background:#f6f7f9}}
svg{{width:100%;height:auto;min-width:42rem}} .figure{{overflow-x:auto}} p.note{{color:#5a606b;font-size:.9rem}}
</style></head><body><h1>Calibration of {model}</h1><p class="verdict">{verdict}</p>
<h2>Ranks of the truth</h2><p class="note">The distribution of ranks minus that of a uniform; lines are coordinates.
A right posterior stays inside the band at all stages and coordinates together with probability {confidence:.0f} %.
A line above zero all along says the posterior is too high, below too low; an S says it is too narrow or too wide.</p>
<div class="figure">{ranks}</div>
<h2>Coverage of central intervals</h2><p class="note">Share of {streams} streams whose truth lay in the interval;
dashes are what it should be, shades two standard errors.</p>
<div class="figure">{coverage}</div>{order}
<p class="note">{streams} simulated streams of {length} observations, {num_particles} particles, seed {seed}. Records:
calibration.json, calibration.npz.</p></body></html>
"""


def calibration_page(directory: Path) -> Path:
    """Draw `index.html` in the directory of a calibration, and return its path."""
    record = Calibration.load(directory)
    settings = record.settings
    order = ""
    if "order_gap" in settings:
        order = (
            "<h2>Order of the data</h2><p>Two orders of the same observations end "
            f"{settings['order_gap']:.3f} posterior standard deviations apart (root mean square); two runs with the "
            f"same order and other draws {settings['noise_gap']:.3f}.</p>"
        )
    page = PAGE.format(
        colour="#2e7d4f" if record.trusted else COLOURS["smc"],
        model=html.escape(settings["model"]),
        verdict=html.escape(record.verdict),
        confidence=100 * (1 - settings["level"]),
        ranks=_svg(_rank_figure(record)),
        coverage=_svg(_coverage_figure(record)),
        order=order,
        streams=settings["streams"],
        length=settings["length"],
        num_particles=settings["num_particles"],
        seed=settings.get("seed", "not recorded"),
    )
    path = directory / "index.html"
    path.write_text(page, encoding="utf-8")
    return path


def _rank_figure(record: Calibration) -> Figure:
    arrays = record.arrays
    length = arrays["ranks"].shape[1]
    stages = np.unique(np.linspace(0, length - 1, SHOWN_STAGES).round().astype(int))
    points = np.arange(1, ECDF_POINTS) / ECDF_POINTS
    curves = ecdf(arrays["ranks"])
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(10, 2.9), layout="constrained", facecolor="white")
        axes = figure.subplots(1, len(stages), sharey=True, squeeze=False)[0]
        for axis, stage in zip(axes, stages, strict=True):
            low, high = arrays["band_low"] - points, arrays["band_high"] - points
            axis.fill_between(points, low, high, color="#e4e7ec", linewidth=0)
            colour = COLOURS["smc"] if arrays["outside"][stage] else COLOURS["pfbr"]
            axis.plot(points, curves[:, stage, :MAX_COORDINATES] - points[:, None], color=colour, linewidth=1.2)
            axis.axhline(0, color="#c9ccd3", linewidth=0.8)
            axis.set(title=f"after {stage + 1}", xlabel="rank")
        axes[0].set_ylabel("ECDF − uniform")
    return figure


def _coverage_figure(record: Calibration) -> Figure:
    coverage, streams = record.arrays["coverage"], record.settings["streams"]
    stages = np.arange(1, coverage.shape[1] + 1)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(10, 3.2), layout="constrained", facecolor="white")
        axis = figure.subplots()
        for nominal, found in zip(COVERAGES, coverage, strict=True):
            error = 2 * np.sqrt(nominal * (1 - nominal) / streams)
            axis.fill_between(stages, nominal - error, nominal + error, color="#e4e7ec", linewidth=0)
            axis.axhline(nominal, color=COLOURS["exact"], linestyle="--", linewidth=0.8)
            axis.plot(
                stages, found[:, :MAX_COORDINATES], color=COLOURS["pfbr"], linewidth=1.2, marker=".", markersize=4
            )
        axis.set(xlabel="observations so far", ylabel="coverage", ylim=(0, 1.02), yticks=COVERAGES)
    return figure


def _svg(figure: Figure) -> str:
    file = io.StringIO()
    with matplotlib.rc_context(STYLE):
        figure.savefig(file, format="svg", metadata={"Date": None})
    text = file.getvalue()
    return text[text.index("<svg") :]
