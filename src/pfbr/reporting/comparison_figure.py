"""The score of every method after each observation, drawn from a run's records alone."""

import os
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from pfbr.errors import FileError
from pfbr.io.records import Records
from pfbr.judging.evaluate import ABOVE, PREDICTIVE
from pfbr.reporting.figures import GRID, INK, save_figure

LABELS = {ABOVE: "cross entropy above exact draws (nats)", PREDICTIVE: "−log density of the next observation (nats)"}


def comparison_figure(directory: str | os.PathLike) -> Path:
    """Draw `scores.png` in the directory of a comparison: distance above exact sampling, or the predictive score."""
    measured = Records(directory).measurements()
    metric = ABOVE if any(m.metric == ABOVE for m in measured) else PREDICTIVE
    shown = [m for m in measured if m.metric == metric and m.stage is not None]
    if not shown:
        raise FileError(f"{directory} holds no scores to draw. Run the comparison first.")
    figure = Figure(figsize=(8, 4.5), layout="constrained", facecolor="white")
    axis = figure.subplots()
    for name in dict.fromkeys(m.method for m in shown):
        own = sorted((m for m in shown if m.method == name), key=lambda m: m.stage or 0)
        stages, values = np.array([m.stage for m in own]), np.array([m.value for m in own])
        errors = np.array([m.error or 0.0 for m in own])
        (line,) = axis.plot(stages, values, label=name, linewidth=1.6, marker="." if len(own) < 2 else None)
        axis.fill_between(stages, values - errors, values + errors, color=line.get_color(), alpha=0.15, linewidth=0)
    if metric == ABOVE:
        axis.axhline(0.0, color=INK, linewidth=0.8)
        if max(m.value for m in shown) > 5.0:
            axis.set_yscale("symlog", linthresh=1.0)  # methods that fail do so by orders of magnitude
    axis.set(xlabel="observations so far", ylabel=LABELS[metric])
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(axis="y", color=GRID)
    axis.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return save_figure(figure, Path(directory) / "scores.png")
