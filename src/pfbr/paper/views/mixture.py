"""The two-mode posterior on a page: the film with its slider, scores and masses over stages, who wins."""

import base64
import io
from typing import Any

import contourpy
import matplotlib
import numpy as np
from matplotlib.figure import Figure

from pfbr.io.arrays import read_npz
from pfbr.judging.evaluate import ABOVE, SCORE, SECONDS, TRAINING
from pfbr.paper.contract import Results
from pfbr.paper.experiments.mixture import CASE, FILMED, FULL, MODE_ERROR, MOVIE
from pfbr.paper.metrics import RESAMPLED
from pfbr.paper.tuned import choice_in_words
from pfbr.paper.views.measured import STAGES, YARDSTICKS, Measured, best_rows, cell, number, stage_chart, standing
from pfbr.reporting.figures import STYLE
from pfbr.reporting.parts import LOOKS, Chart, Chooser, Finding, Movie, Page, Picture, Series, Table

BASELINES = ("smc-one-pass", "ibis")
TRUTH = LOOKS["truth"].light
STRIP_STAGES = (1, 2, 5, 10, 20, 30)
TITLES = {
    "truth": "True density",
    "pfbr": "pfbr (ours)",
    "pfbr-paper": "pfbr (paper's)",
    "smc-one-pass": "One-pass SMC",
    "exact": "Exact draws",
}


def view(results: Results) -> Page:
    """The film, the charts over all streams, the table."""
    s = results.settings
    records = results.case(CASE)
    measured, n = Measured(records.measurements()), s["num_particles"]
    film = read_npz(records.directory / MOVIE)
    findings: list[Finding] = []
    for metric, where, unit in (
        (ABOVE, "Cross entropy, mean of all stages", "nats above exact"),
        (MODE_ERROR, "Mass in the wrong mode, mean of all stages", ""),
    ):
        for ours in ("pfbr", "pfbr-paper"):
            signed = metric == ABOVE
            findings += standing(measured, metric, ours, BASELINES, n, where=where, unit=unit, signed=signed)
    charts = _charts(measured, film, n)
    return Page(
        title="A posterior with two modes, one observation at a time",
        lead=(
            "Each observation comes from one of two bells, centred at x₁ and at x₁ + x₂: ½ N(x₁, 1) + ½ N(x₁ + x₂, 1). "
            f"Data from x = (1, −2) fit (−1, 2) as well, so the posterior has two modes. {n} particles; no method saw "
            "the streams before."
        ),
        findings=findings,
        parts=[
            Movie(
                "The density, stage by stage",
                "Shade: the density that each method stands for (for particles, the kernel estimate that is scored). "
                "Lines enclose 50, 80 and 95 % of the true posterior. Dots are particles, by weight. The cross is the "
                "unknown behind the data.",
                _movie(film, s),
            ),
            Chooser(
                f"Over {s['num_streams']} streams",
                "Mean ± one standard error over streams, except the first view, which shows the stream of the film.",
                ("measure",),
                charts,
                ("above exact",),
            ),
            Picture(
                "The evolution in one picture",
                "The stream of the film; rows are methods, columns stages.",
                "Densities of the truth, pfbr, the paper's operator, SMC and exact draws after several observations",
                _strip_png(film, s),
            ),
            _table(measured, n, s),
        ],
        figures={
            "scores": [charts["above exact",], charts["mass in the wrong mode",]],
            "mode_mass": [charts["mass of the mode, one stream",]],
            "evolution": lambda: strip(film, s),
        },
        facts=_facts(measured),
    )


def _charts(measured: Measured, film: dict[str, np.ndarray], n: int) -> dict[tuple[str, ...], Chart]:
    shown = [name for name in LOOKS if name not in YARDSTICKS]

    def chart(metric: str, y_label: str, methods=shown, **options) -> Chart:
        return stage_chart(measured, metric, n, title="", y_label=y_label, methods=methods, **options)

    stages = [float(m) for m in range(len(film["truth_mass"]))]
    masses = [Series(name, stages, film[f"{name}_mass"].tolist()) for name in ("truth", *FILMED)]
    return {
        ("mass of the mode, one stream",): Chart("", STAGES, "mass of the mode x₂ < 0", masses, y_limits=(0.0, 1.0)),
        ("above exact",): chart(
            ABOVE, "nats above exact draws", y_scale="symlog", linear_to=0.2, zero=f"{n} exact draws"
        ),
        ("cross entropy",): chart(SCORE, "cross entropy (nats)", [*shown, "exact"], y_scale="symlog", linear_to=4.0),
        ("mass in the wrong mode",): chart(MODE_ERROR, "mass in the wrong mode", [*shown, "exact"]),
    }


def _table(measured: Measured, n: int, s: dict) -> Table:
    methods = measured.methods(ABOVE, n)
    metrics = {
        "above exact (nats)": ABOVE,
        "cross entropy": SCORE,
        "resampled first": RESAMPLED,
        "wrong mode": MODE_ERROR,
    }
    columns = {word: [measured.whole(name, metric, n) for name in methods] for word, metric in metrics.items()}
    eligible = [name not in YARDSTICKS for name in methods]
    best = {(row, c + 1) for c, word in enumerate(columns) for row in best_rows(columns[word], eligible)}
    rows = []
    for r, name in enumerate(methods):
        last = measured.stages(name, ABOVE, n)[-1]
        update, training = measured.whole(name, SECONDS, n), measured.whole(name, TRAINING, n)
        rows.append(
            [
                LOOKS[name].label,
                *(cell(column[r], signed=word.startswith("above")) for word, column in columns.items()),
                cell(last),
                "–" if update is None else number(1e3 * update.value, 2),
                "–" if training is None or not training.value else number(training.value / 60, 1),
            ]
        )
    return Table(
        "The same in numbers",
        f"{n} particles, mean over {s['num_stages']} stages and {s['num_streams']} streams ± standard error over "
        "streams. Bold: the best, and what lies within its noise.",
        ["method", *metrics, f"above exact, stage {s['num_stages']}", "CPU per update (ms)", "training (min)"],
        rows,
        methods,
        frozenset(best),
    )


def _contours(film: dict[str, np.ndarray], stage: int, ticks: np.ndarray) -> list[list[list[float]]]:
    """Lines of the true density that enclose given masses, as lists of (x1, x2)."""
    generator = contourpy.contour_generator(ticks, ticks, film["log_density"][stage].T)
    lines = [line for level in film["levels"][stage] for line in generator.lines(float(level))]
    return [np.round(np.asarray(line, float), 2).tolist() for line in lines]


def _ticks(s: dict[str, Any]) -> np.ndarray:
    return (np.arange(s["cells"]) + 0.5) / s["cells"] * 2 * s["reach"] - s["reach"]


def _shades(film: dict[str, np.ndarray], name: str) -> np.ndarray:
    """Density as a share of the true density's top at that stage, a byte a cell."""
    top = film["log_density"].max(axis=(1, 2), keepdims=True)
    density = film["log_density"] if name == "truth" else film[f"{name}_density"]
    return np.round(255 * np.clip(np.exp(density - top), 0.0, 1.0)).astype(np.uint8)


def _movie(film: dict[str, np.ndarray], s: dict[str, Any]) -> dict[str, Any]:
    ticks = _ticks(s)
    panels = []
    for name, title in TITLES.items():
        panel: dict[str, Any] = {
            "name": name,
            "title": title,
            "shades": base64.b64encode(_shades(film, name).tobytes()).decode("ascii"),
            "mass": film[f"{name}_mass"].tolist(),
        }
        if name != "truth":
            count = film[f"{name}_points"].shape[1]
            panel["points"] = np.round(film[f"{name}_points"], 2).tolist()
            panel["score"] = film[f"{name}_score"].tolist()
            if np.ptp(film[f"{name}_weights"]) > 1e-6:
                panel["weights"] = np.round(film[f"{name}_weights"] * count, 2).tolist()
        panels.append(panel)
    return {
        "cells": s["cells"],
        "reach": s["reach"],
        "unknown": list(s["unknown"]),
        "observations": film["observations"][:, 0].tolist(),
        "contours": [_contours(film, stage, ticks) for stage in range(len(film["truth_mass"]))],
        "panels": panels,
    }


def strip(film: dict[str, np.ndarray], s: dict[str, Any]) -> Figure:
    """Rows of methods, columns of stages."""
    last, reach, ticks = len(film["observations"]), s["reach"], _ticks(s)
    stages = sorted({m for m in STRIP_STAGES if m <= last} | {last})
    shading = {"cmap": "Purples", "vmin": 0, "interpolation": "bilinear"}
    size = (2 * len(stages) + 0.6, 2 * len(TITLES) + 0.4)
    figure = Figure(figsize=size, layout="constrained", facecolor="white")
    axes = figure.subplots(len(TITLES), len(stages), sharex=True, sharey=True, squeeze=False)
    for row, (name, title) in enumerate(TITLES.items()):
        shades, colour = _shades(film, name), LOOKS[name].light
        for axis, stage in zip(axes[row], stages, strict=True):
            axis.imshow(shades[stage].T ** 0.8, origin="lower", extent=(-reach, reach) * 2, **shading)
            levels, lines = np.unique(film["levels"][stage]), {"linewidths": 0.7, "linestyles": "-"}
            axis.contour(ticks, ticks, film["log_density"][stage].T, levels=levels, colors=TRUTH, **lines)
            if name != "truth":
                weights = film[f"{name}_weights"][stage]
                sizes = 4 * np.minimum(weights * len(weights), 9)
                axis.scatter(*film[f"{name}_points"][stage].T, s=sizes, color=colour, alpha=0.45, linewidths=0)
            axis.set(xlim=(-reach, reach), ylim=(-reach, reach), xticks=(-2, 0, 2), yticks=(-2, 0, 2))
        axes[row, 0].set_ylabel(f"{title}\n$x_2$", color=colour, fontweight="bold")
    for column, stage in enumerate(stages):
        axes[0, column].set_title(f"after {stage}", fontsize=10)
        axes[-1, column].set_xlabel("$x_1$")
    return figure


def _strip_png(film: dict[str, np.ndarray], s: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    with matplotlib.rc_context(STYLE):
        figure = strip(film, s)
    figure.savefig(buffer, format="png", dpi=110, metadata={"Software": None})
    return buffer.getvalue()


def _facts(measured: Measured) -> list[str]:
    chosen = f" SMC was tuned on other streams: {choice_in_words(measured.all, 'smc-one-pass')}."
    return [
        "Our operator was trained on unknowns from the prior; the paper's, as there, on streams from the very unknown "
        f"that it is tested on ({FULL.training_steps} steps, seed 0).{chosen}",
        "Once the modes are apart, a flow cannot carry mass between them: their shares stay where they were.",
    ]
