"""The figures of the gallery, in the house's looks: what the scripts found, drawn; nothing is computed here."""

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.dates import DateFormatter, MonthLocator
from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter

from pfbr.inference.display.looks import GRID, INK, STYLE

OURS, OTHER, TRUTH, SEEN = "#1f63d2", "#d1541c", "#6d4bb8", "#8a909b"


def new_figure(rows: int = 1, columns: int = 1, *, size: tuple[float, float], **options: Any) -> tuple[Figure, Any]:
    """A figure and its axes, in letters that can be read from the last row, and on a phone."""
    matplotlib.rcParams.update({**STYLE, "font.size": 12, "axes.titlecolor": INK, "axes.titlelocation": "left"})
    matplotlib.rcParams.update({"axes.titlesize": 13, "axes.grid": True, "grid.color": GRID, "axes.axisbelow": True})
    matplotlib.rcParams.update({"legend.frameon": False, "legend.fontsize": 11, "axes.titlepad": 9})
    figure = Figure(figsize=size, layout="constrained", facecolor="white")
    return figure, figure.subplots(rows, columns, **options)


def save(figure: Figure, path: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150, metadata={"Software": None})


def volatility(path: str, dates: np.ndarray, y: np.ndarray, risk: np.ndarray, spread: np.ndarray) -> None:
    figure, (above, below) = new_figure(2, 1, size=(8, 6.4), sharex=True)
    above.fill_between(dates, spread[:, 0], spread[:, 2], color=OURS, alpha=0.25, linewidth=0, label="90 %")
    above.plot(dates, spread[:, 1], color=OURS, linewidth=1.3, label="median")
    above.set(ylabel="volatility, % a day", ylim=(0, 8), title="Crude oil: the volatility of tomorrow, known today")
    above.legend(loc="upper left", ncols=2)
    below.plot(dates, y, ".", color=SEEN, markersize=3, label="returns")
    below.plot(dates, risk[:, 0], color=OURS, linewidth=1.2, label="value at risk, 1 %")
    worse = y < risk[:, 0]
    below.plot(dates[worse], y[worse], "o", color=OTHER, markersize=5, label=f"below it ({worse.sum()} days)")
    below.set(ylabel="return, %", ylim=(-15, 16))
    below.legend(loc="upper left", ncols=3, columnspacing=1.0, handletextpad=0.4)
    below.xaxis.set_major_locator(MonthLocator(bymonth=(1, 7)))
    below.xaxis.set_major_formatter(DateFormatter("%b %Y"))
    save(figure, path)


def counts(path: str, dates: np.ndarray, y: np.ndarray, bands: np.ndarray, ahead: Any) -> None:
    figure, axis = new_figure(size=(8, 4.8))
    later = dates[-1] + np.arange(1, len(ahead) + 1)
    axis.plot(dates, y, ".", color=SEEN, label="killed")
    axis.fill_between(dates, bands[:, 0], bands[:, 2], color=OURS, alpha=0.25, linewidth=0)
    axis.plot(dates, bands[:, 1], color=OURS, label="rate as known then, 90 %")
    axis.fill_between(later, *ahead.observations.quantile([0.05, 0.95])[:, :, 0], color=OTHER, alpha=0.25, linewidth=0)
    axis.plot(later, ahead.observations.mean()[:, 0], color=OTHER, label="seven months ahead, 90 %")
    axis.axvline(np.datetime64("1983-02"), color=TRUTH, linestyle="--", linewidth=1)
    axis.text(np.datetime64("1982-10"), 15.6, "seat belts\ncompulsory", ha="right", va="center", color=TRUTH)
    axis.set(title="Van drivers killed on roads of Great Britain", ylabel="a month", ylim=(0, 18))
    figure.legend(loc="outside lower center", ncols=3, columnspacing=1.2)
    save(figure, path)


def experiment(
    path: str, effect: np.ndarray, better: np.ndarray, plain: np.ndarray, loss: np.ndarray, stop: int
) -> None:
    figure, (above, below) = new_figure(2, 1, size=(8, 6.8), sharex=True)
    people = np.arange(1, len(better) + 1)
    above.fill_between(people, effect[0], effect[2], color=OURS, alpha=0.25, linewidth=0, label="90 %")
    above.plot(people, effect[1], color=OURS, label="effect of free care")
    above.axhline(0, color=INK, linewidth=0.8)
    above.set(title="Does free care send more people to a doctor?", ylabel="effect on the log odds", ylim=(-0.8, 1.2))
    above.legend(loc="upper left", ncols=2)
    below.plot(people, plain, color=OTHER, linewidth=1.2, label="two shares, health left aside")
    below.plot(people, better, color=OURS, label="pfbr, health as covariates")
    below.set(ylabel="probability that it does", xlabel="participants", ylim=(0, 1.04), xscale="log")
    below.legend(loc="lower left")
    cost = below.twinx()
    cost.plot(people, np.maximum(loss, 1e-7), color=TRUTH, linewidth=1.2, linestyle=":")
    cost.axhline(0.001, color=TRUTH, linewidth=0.8, linestyle="--", alpha=0.5)
    cost.set(yscale="log", ylim=(1e-5, 1))
    cost.set_ylabel("expected loss of deciding (dotted)", color=TRUTH)
    cost.grid(visible=False)
    for axis in (above, below):
        axis.axvline(stop, color=TRUTH, linestyle="--", linewidth=1)
    above.text(stop * 1.08, -0.7, f"stop after {stop}", color=TRUTH)
    below.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    save(figure, path)


def tracking(path: str, times, sensor, ranges, truth, samples, sensors) -> None:
    """An animation (.gif): the particles, what is reported, and where the boat is."""
    from matplotlib.animation import FuncAnimation, PillowWriter
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure, axis = new_figure(size=(6.6, 6.6))
    FigureCanvasAgg(figure)
    axis.plot(*sensors.T, "^", color=INK, markersize=8, label="sensors")
    (ring,) = axis.plot([], [], color=OTHER, linewidth=1, alpha=0.7, label="a range")
    (cloud,) = axis.plot([], [], ".", color=OURS, markersize=2.5, alpha=0.5)
    (believed,) = axis.plot([], [], color=OURS, linewidth=1.4, label="particles and their mean")
    (wake,) = axis.plot([], [], "--", color=TRUTH, linewidth=1)
    (boat,) = axis.plot([], [], "o", color=TRUTH, markersize=6, label="the boat")
    axis.set(xlim=(-8, 108), ylim=(-12, 100), aspect="equal", xlabel="east", ylabel="north")
    figure.legend(loc="outside lower center", ncols=4, columnspacing=1.0, handletextpad=0.4)
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


def sensors(path: str, apart: np.ndarray, window: np.ndarray, broken: int, hour: int, bar: float) -> None:
    figure, (above, below) = new_figure(2, 1, size=(8, 6.6), sharex=True)
    hours, others = np.arange(len(apart)), np.arange(apart.shape[1]) != broken
    above.plot(hours, apart[:, others], color=SEEN, linewidth=0.3, alpha=0.25)
    above.plot(hours, apart[:, broken], color=OTHER, linewidth=1)
    above.set(title="Two hundred thermometers: which one breaks?", ylabel="reading − reference, °C", ylim=(-9, 9))
    below.plot(hours, window[:, others], color=OURS, linewidth=0.4, alpha=0.3)
    below.plot(hours, window[:, broken], color=OTHER, linewidth=1.8)
    below.axhline(bar, color=INK, linewidth=0.8, linestyle="--")
    below.text(2, bar - 7, "alarm below", color=INK)
    for axis in (above, below):
        axis.axvline(hour, color=TRUTH, linewidth=1, linestyle="--")
    below.set(title="Its log evidence tells", ylabel="nats of a day, from usual", xlabel="hour", ylim=(-80, 30))
    below.text(hour - 3, -72, "it sticks", ha="right", color=TRUTH)
    save(figure, path)


def assimilation(path: str, states: np.ndarray, seen: np.ndarray, found: np.ndarray, errors: dict) -> None:
    figure, (above, below) = new_figure(2, 1, size=(8, 8.6), height_ratios=(1.25, 1))
    few, some = slice(-90, None), slice(0, 220)
    above.plot([states[few, 0], found[few, 0]], [states[few, 2], found[few, 2]], color=OURS, linewidth=0.8)
    above.plot(seen[few, 0], seen[few, 2], "x", color=SEEN, markersize=4, alpha=0.7, label="seen")
    above.plot(found[few, 0], found[few, 2], "o", color=OURS, markersize=6, fillstyle="none", label="found")
    above.plot(states[few, 0], states[few, 2], ".", color=TRUTH, markersize=5, label="the state")
    above.set(title="Lorenz-63: the last 90 reports", xlabel="first number", ylabel="third number")
    looks = {
        "smc": (OTHER, "bootstrap filter, 800", 0.8),
        "enkf": ("#2e8b3d", "ensemble Kalman filter, 100", 0.9),
        "auto": (OURS, "pfbr, 100", 1.6),
    }
    for method, (colour, label, width) in looks.items():
        below.plot(errors[method][some], color=colour, linewidth=width, label=label)
    below.axhline(np.sqrt(2.0), color=INK, linewidth=0.8, linestyle="--", label="an observation")
    below.set(title="Error of the mean after each report", xlabel="report", ylabel="root mean square")
    below.set(yscale="log", ylim=(0.03, 200))
    above.legend(loc="upper center", ncols=3)
    below.legend(loc="upper center", ncols=2)
    save(figure, path)


def digits(path: str, shares: dict) -> None:
    figure, axis = new_figure(size=(8, 4.6))
    for (name, own), colour in zip(shares.items(), (OURS, "#2b9be8", "#d6408a"), strict=True):
        axis.plot(
            np.arange(1, len(own) + 1), 100 * np.cumsum(own) / np.arange(1, len(own) + 1), color=colour, label=name
        )
    axis.set(title="Eight or six? Coming images told rightly, so far", xlabel="batches of 32 images seen", ylabel="%")
    axis.legend(loc="lower right")
    save(figure, path)
