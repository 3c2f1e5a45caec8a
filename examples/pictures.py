"""The figures of the gallery, in the house's looks: what the scripts found, drawn; nothing is computed here."""

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from pfbr.inference.display.looks import GRID, INK, STYLE

OURS, OTHER, TRUTH, SEEN = "#1f63d2", "#d1541c", "#6d4bb8", "#8a909b"


def new_figure(rows: int = 1, columns: int = 1, *, size: tuple[float, float], **options: Any) -> tuple[Figure, Any]:
    """A figure and its axes."""
    matplotlib.rcParams.update({**STYLE, "font.size": 10, "axes.titlecolor": INK, "axes.titlelocation": "left"})
    matplotlib.rcParams.update({"axes.titlesize": 11, "axes.grid": True, "grid.color": GRID, "axes.axisbelow": True})
    figure = Figure(figsize=size, layout="constrained", facecolor="white")
    return figure, figure.subplots(rows, columns, **options)


def save(figure: Figure, path: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130, metadata={"Software": None})


def volatility(path: str, dates: np.ndarray, y: np.ndarray, risk: np.ndarray, spread: np.ndarray) -> None:
    figure, (above, below) = new_figure(2, 1, size=(10, 5.6), sharex=True)
    above.fill_between(dates, spread[:, 0], spread[:, 2], color=OURS, alpha=0.25, linewidth=0)
    above.plot(dates, spread[:, 1], color=OURS, linewidth=1.3)
    above.set(ylabel="volatility, % a day", ylim=(0, 8), title="Oil: what tomorrow's volatility may be, known today")
    below.plot(dates, y, ".", color=SEEN, markersize=3)
    below.plot(dates, risk[:, 0], color=OURS, linewidth=1.2)
    worse = y < risk[:, 0]
    below.plot(dates[worse], y[worse], "o", color=OTHER, markersize=4)
    below.set(ylabel="return, %", title="Returns, the value at risk at 1 %, and the days below it")
    save(figure, path)


def counts(path: str, dates: np.ndarray, y: np.ndarray, bands: np.ndarray, ahead: Any) -> None:
    figure, axis = new_figure(size=(10, 4.2))
    later = dates[-1] + np.arange(1, len(ahead) + 1)
    axis.plot(dates, y, ".", color=SEEN)
    axis.fill_between(dates, bands[:, 0], bands[:, 2], color=OURS, alpha=0.25, linewidth=0)
    axis.plot(dates, bands[:, 1], color=OURS)
    axis.fill_between(later, *ahead.observations.quantile([0.05, 0.95])[:, :, 0], color=OTHER, alpha=0.25, linewidth=0)
    axis.plot(later, ahead.observations.mean()[:, 0], color=OTHER)
    axis.axvline(np.datetime64("1983-02"), color=TRUTH, linestyle="--", linewidth=1)
    axis.text(np.datetime64("1983-01"), 16.5, "seat belts compulsory", ha="right", color=TRUTH)
    axis.set(title="Van drivers killed a month, the rate as it was known then, and seven months ahead", ylim=(0, 18))
    save(figure, path)


def experiment(
    path: str, effect: np.ndarray, better: np.ndarray, plain: np.ndarray, loss: np.ndarray, stop: int
) -> None:
    figure, (left, middle, right) = new_figure(1, 3, size=(12, 3.7))
    people = np.arange(1, len(better) + 1)
    left.fill_between(people, effect[0], effect[2], color=OURS, alpha=0.25, linewidth=0)
    left.plot(people, effect[1], color=OURS)
    left.axhline(0, color=INK, linewidth=0.8)
    left.set(title="Effect of free care on the log odds", xlabel="participants", ylim=(-0.8, 1.2))
    middle.plot(people, plain, color=OTHER, linewidth=1, label="two shares, health left aside")
    middle.plot(people, better, color=OURS, label="pfbr, health as covariates")
    middle.set(title="Probability that more see a doctor", xlabel="participants", ylim=(0, 1.02))
    middle.legend(frameon=False, loc="lower center", fontsize=9)
    right.plot(people, np.maximum(loss, 1e-7), color=OURS)
    right.axhline(0.001, color=INK, linewidth=0.8, linestyle="--")
    right.axvline(stop, color=TRUTH, linestyle="--", linewidth=1)
    right.text(stop * 1.15, 0.2, f"stop after {stop}", color=TRUTH)
    right.set(title="Expected loss if one decides now", xlabel="participants", yscale="log", ylim=(1e-5, 1))
    for axis in (left, middle, right):
        axis.set_xscale("log")
    save(figure, path)


def tracking(path: str, times, sensor, ranges, truth, samples, sensors) -> None:
    """An animation (.gif): the particles, what is reported, and where the boat is."""
    from matplotlib.animation import FuncAnimation, PillowWriter
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure, axis = new_figure(size=(5.4, 5.0))
    FigureCanvasAgg(figure)
    axis.plot(*sensors.T, "^", color=INK, markersize=8)
    (cloud,) = axis.plot([], [], ".", color=OURS, markersize=2.5, alpha=0.5)
    (boat,) = axis.plot([], [], "o", color=TRUTH, markersize=6)
    (wake,) = axis.plot([], [], "--", color=TRUTH, linewidth=1)
    (believed,) = axis.plot([], [], color=OURS, linewidth=1.2)
    (ring,) = axis.plot([], [], color=OTHER, linewidth=1, alpha=0.7)
    axis.set(xlim=(-8, 108), ylim=(-12, 100), aspect="equal")
    turn, means = np.linspace(0, 2 * np.pi, 120), samples.mean(axis=1)
    frames = np.unique(np.linspace(0, len(times) - 1, 90).astype(int))

    def show(t: int) -> None:
        cloud.set_data(*samples[t].T)
        boat.set_data(*truth[t : t + 1].T)
        wake.set_data(*truth[: t + 1].T)
        believed.set_data(*means[max(0, t - 60) : t + 1].T)
        lost = np.isnan(ranges[t])
        around = sensors[sensor[t]] + (0.0 if lost else ranges[t]) * np.column_stack([np.cos(turn), np.sin(turn)])
        ring.set_data(*around.T)
        axis.set_title(f"time {times[t]:5.1f}: {'no report' if lost else f'a range from sensor {sensor[t] + 1}'}")

    FuncAnimation(figure, show, frames=frames).save(path, PillowWriter(fps=6), dpi=72)
    show(int(frames[len(frames) * 2 // 3]))
    figure.savefig(Path(path).with_suffix(".png"), dpi=110, metadata={"Software": None})


def sensors(path: str, apart: np.ndarray, window: np.ndarray, broken: int, hour: int, bar: float) -> None:
    figure, (left, right) = new_figure(1, 2, size=(10, 3.8))
    hours, others = np.arange(len(apart)), np.arange(apart.shape[1]) != broken
    left.plot(hours, apart[:, others], color=SEEN, linewidth=0.3, alpha=0.25)
    left.plot(hours, apart[:, broken], color=OTHER, linewidth=1)
    left.set(title="Readings minus the reference, °C: which one breaks?", xlabel="hour", ylim=(-9, 9))
    right.plot(hours, window[:, others], color=OURS, linewidth=0.4, alpha=0.3)
    right.plot(hours, window[:, broken], color=OTHER, linewidth=1.6)
    right.axhline(bar, color=INK, linewidth=0.8, linestyle="--")
    right.axvline(hour, color=TRUTH, linewidth=1, linestyle="--")
    right.set(title="Log evidence of the last day, above what is usual", xlabel="hour", ylim=(-80, 30))
    right.text(hour - 3, -72, "it breaks", ha="right", color=TRUTH)
    save(figure, path)


def assimilation(path: str, states: np.ndarray, seen: np.ndarray, found: np.ndarray, errors: dict) -> None:
    figure, (left, right) = new_figure(1, 2, size=(11, 4.4), width_ratios=(1, 1.5))
    few, some = slice(-90, None), slice(0, 220)
    left.plot([states[few, 0], found[few, 0]], [states[few, 2], found[few, 2]], color=OURS, linewidth=0.8)
    left.plot(seen[few, 0], seen[few, 2], "x", color=SEEN, markersize=4, alpha=0.7, label="seen")
    left.plot(found[few, 0], found[few, 2], "o", color=OURS, markersize=6, fillstyle="none", label="found")
    left.plot(states[few, 0], states[few, 2], ".", color=TRUTH, markersize=5, label="the state")
    left.set(title="Lorenz-63: the last 90 reports", xlabel="first number", ylabel="third number")
    looks = {
        "smc": (OTHER, "bootstrap filter, 800", 0.8),
        "enkf": ("#2e8b3d", "ensemble Kalman filter, 100", 0.9),
        "auto": (OURS, "pfbr, 100", 1.6),
    }
    for method, (colour, label, width) in looks.items():
        right.plot(errors[method][some], color=colour, linewidth=width, label=label)
    right.axhline(np.sqrt(2.0), color=INK, linewidth=0.8, linestyle="--", label="an observation")
    right.set(title="Error of the mean after each report", xlabel="report", yscale="log", ylim=(0.03, 40))
    for axis in (left, right):
        axis.legend(frameon=False, fontsize=9, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=4)
    save(figure, path)


def digits(path: str, shares: dict) -> None:
    figure, axis = new_figure(size=(8, 4.0))
    for (name, own), colour in zip(shares.items(), (OURS, "#2b9be8", "#d6408a"), strict=True):
        axis.plot(
            np.arange(1, len(own) + 1), 100 * np.cumsum(own) / np.arange(1, len(own) + 1), color=colour, label=name
        )
    axis.set(
        title="Eight or six: share of the coming images told rightly, so far", xlabel="batches of 32 seen", ylabel="%"
    )
    axis.legend(frameon=False, loc="lower right")
    save(figure, path)
