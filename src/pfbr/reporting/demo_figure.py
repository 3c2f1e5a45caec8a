"""A demonstration's records to one figure: draws what was measured and computes nothing."""

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pfbr.judging.demo import two_modes
from pfbr.judging.demo.record import DemoRecord
from pfbr.reporting.figures import GRID, INK, STYLE, save_figure

COLOURS = {"exact": INK, "pfbr": "#1f63d2", "smc": "#d1541c", "prior": "#8a909b", "truth": "#6d4bb8"}
NAMES = {"exact": "exact draws", "pfbr": "pfbr", "smc": "one-pass SMC", "prior": "the prior"}
SHOWN_STAGES = (1, 5, 10, 30)


def demo_figure(directory: Path) -> list[Path]:
    """Draw `demo.png` and `demo.svg` in the directory of a demonstration's records: stages across, methods down."""
    record = DemoRecord.load(directory, two_modes.NAME)
    num_observations = len(record.arrays["observations"])
    stages = [stage for stage in SHOWN_STAGES if stage <= num_observations] or [num_observations]
    with matplotlib.rc_context({**STYLE, "font.size": 11}):  # read on a phone too
        figure = Figure(figsize=(11, 5.9), layout="constrained", facecolor="white")
        left, right = figure.subfigures(1, 2, width_ratios=(1.55, 1), squeeze=False)[0]
        axes = left.subplots(3, len(stages), sharex=True, sharey=True, squeeze=False)
        for column, stage in enumerate(stages):
            _posterior_column(axes[:, column], record, stage)
        for row, name in enumerate(("the truth", "pfbr", "one-pass SMC")):
            axes[row, 0].set_ylabel(f"{name}\n$x_2$", color=COLOURS[("truth", "pfbr", "smc")[row]], fontweight="bold")
        upper, lower = right.subplots(2, 1, height_ratios=(1.5, 1))
        _score(upper, record)
        _mass(lower, record)
        return [save_figure(figure, directory / name) for name in ("demo.png", "demo.svg")]


def _posterior_column(axes: np.ndarray, record: DemoRecord, stage: int) -> None:
    """The truth on top, then the particles of each method over its contours."""
    arrays, settings = record.arrays, record.settings
    reach, cells = settings["reach"], settings["cells"]
    log_density = arrays["log_density"][stage].T
    ticks = (np.arange(cells) + 0.5) / cells * 2 * reach - reach
    levels = np.unique(arrays["levels"][stage])
    for axis in axes:
        axis.contour(ticks, ticks, log_density, levels=levels, colors=COLOURS["truth"], linewidths=0.8, linestyles="-")
        axis.set(xlim=(-reach, reach), ylim=(-reach, reach), xticks=(-2, 0, 2), yticks=(-2, 0, 2), aspect="equal")
    extent = (-reach, reach, -reach, reach)
    axes[0].imshow(np.exp(log_density), origin="lower", extent=extent, cmap="Purples", interpolation="bilinear")
    axes[0].set_title(f"after {stage}", fontsize=11, color=INK)
    for axis, name in zip(axes[1:], ("pfbr", "smc"), strict=True):
        points, weights = arrays[f"{name}_points"][stage], arrays[f"{name}_weights"][stage]
        sizes = 7 * np.minimum(weights * len(weights), 9)
        axis.scatter(*points.T, s=sizes, color=COLOURS[name], alpha=0.5, linewidths=0)
    axes[-1].set_xlabel("$x_1$")


def _score(axis: Axes, record: DemoRecord) -> None:
    for name in ("prior", "smc", "pfbr", "exact"):
        score = record.arrays[f"{name}_score"]
        axis.plot(
            score, color=COLOURS[name], linestyle=":" if name == "prior" else "-", linewidth=1.8, label=NAMES[name]
        )
    axis.set(xlabel="observations so far", ylabel="cross entropy to the truth (nats)")
    axis.grid(axis="y", color=GRID)
    axis.legend(frameon=False, loc="upper left", reverse=True, ncols=2, fontsize=10, columnspacing=1.0)
    axis.margins(x=0.01)
    low, high = axis.get_ylim()
    axis.set_ylim(low, high + 0.35 * (high - low))  # room for the legend


def _mass(axis: Axes, record: DemoRecord) -> None:
    for name, style in {"truth": "--", "pfbr": "-", "smc": "-"}.items():
        label = "the truth" if name == "truth" else None  # the others are named above
        axis.plot(record.arrays[f"{name}_mass"], style, color=COLOURS[name], linewidth=1.6, label=label)
    axis.set(xlabel="observations so far", ylabel="mass of the mode $x_2 < 0$", ylim=(0, 1))
    axis.grid(axis="y", color=GRID)
    axis.legend(frameon=False, loc="upper left", fontsize=10)
    axis.margins(x=0.01)
