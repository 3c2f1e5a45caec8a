"""The pictures of the concept pages: `python -m benchmarks.pictures` writes them into docs/images."""

from pathlib import Path
from statistics import NormalDist

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, StrMethodFormatter

from benchmarks.streams.picture import tracked
from pfbr.reporting.figures import GRID, INK, STYLE, save_figure

IMAGES = Path(__file__).resolve().parents[1] / "docs/images"
OURS, TRUTH = "#1f63d2", "#6d4bb8"
ANGLE = 0.6  # of the direction that the observation is about
DIRECTION = np.array([np.cos(ANGLE), np.sin(ANGLE)])
OBSERVED, NOISE = 1.6, 0.35


def main() -> None:
    with matplotlib.rc_context({**STYLE, "font.size": 12, "legend.frameon": False}):
        for draw in (particles, weighing, flow, between, evidence, changed, adaptive, tracked):
            save_figure(draw(), IMAGES / f"concept_{draw.__name__}.png")


def prior_draws(num: int) -> np.ndarray:
    return np.random.default_rng(4).normal(size=(num, 2))


def weights_of(points: np.ndarray) -> np.ndarray:
    log_weights = -0.5 * ((points @ DIRECTION - OBSERVED) / NOISE) ** 2
    weights = np.exp(log_weights - log_weights.max())
    return weights / weights.sum()


def carried(points: np.ndarray, share: float) -> np.ndarray:
    """Kalman's update by a share of the observation, along its direction; nothing moves across it."""
    precision = 1 + share / NOISE**2
    along = points @ DIRECTION
    moved = along / np.sqrt(precision) + share * OBSERVED / NOISE**2 / precision
    return points + np.outer(moved - along, DIRECTION)


def particles() -> Figure:
    points = prior_draws(160)
    weights = weights_of(points)
    figure = Figure(figsize=(9, 3.7), layout="constrained", facecolor="white")
    axes = figure.subplots(1, 3, sharex=True, sharey=True)
    size = 1 / np.sum(weights**2)
    titles = ("prior: 160 draws", f"weighed: worth {size:.0f}", "moved: 160 equal ones")
    sizes = (14, 14 * weights * len(points), 14)
    clouds = (points, points, carried(points, 1.0))
    for axis, title, cloud, area in zip(axes, titles, clouds, sizes, strict=True):
        axis.scatter(*cloud.T, s=area, color=OURS, alpha=0.6, linewidths=0)
        _posterior(axis)
        axis.set_title(title, color=INK, fontsize=12)
        axis.set(xlabel="first unknown", xlim=(-3.3, 3.3), ylim=(-3.3, 3.3), aspect="equal")
    axes[0].set_ylabel("second unknown")
    return figure


def weighing() -> Figure:
    """What 256 draws of a prior N(0, I) are worth after an observation of all d numbers, which lies one spread off."""
    noises = np.geomspace(0.05, 5, 60)
    draws = np.random.default_rng(0).normal(size=(200, 256, 10))
    figure = Figure(figsize=(8, 4.2), layout="constrained", facecolor="white")
    axis = figure.subplots()
    for dim, alpha in ((1, 1.0), (3, 0.75), (10, 0.5)):
        apart = np.sum((draws[..., :dim] - 1 / np.sqrt(dim)) ** 2, axis=-1)
        worth = []
        for noise in noises:
            weights = np.exp(-0.5 * (apart - apart.min(axis=1, keepdims=True)) / noise**2)
            worth.append(np.mean(weights.sum(axis=1) ** 2 / np.sum(weights**2, axis=1)))
        axis.plot(noises, worth, color=OURS, alpha=alpha, linewidth=2, label=f"d = {dim}")
    axis.axhline(256, color="#8a909b", linewidth=1, linestyle="--")
    axis.text(0.05, 246, "after moving: all of them", va="top", color="#5a606b")
    axis.set(xscale="log", xlabel="noise of the observation, in spreads of the prior", ylim=(0, 272))
    axis.set_ylabel("effective sample size of 256")
    axis.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.set_xticks([0.05, 0.1, 0.3, 1, 3])
    axis.grid(axis="y", color=GRID)
    axis.legend(loc="center left")
    return figure


def flow() -> Figure:
    points = prior_draws(90)
    shares = np.concatenate([[0.0], np.geomspace(0.01, 1.0, 24)])
    paths = np.stack([carried(points, share) for share in shares])
    figure = Figure(figsize=(7, 6.6), layout="constrained", facecolor="white")
    axis = figure.subplots()
    axis.plot(paths[..., 0], paths[..., 1], color=OURS, alpha=0.35, linewidth=0.9)
    axis.scatter(*paths[0].T, s=9, color="#8a909b", label="before", zorder=3)
    axis.scatter(*paths[-1].T, s=13, color=OURS, label="after", zorder=4)
    _posterior(axis, label="exact posterior, 50 % and 90 %")
    axis.set(xlabel="first unknown", ylabel="second unknown", aspect="equal", xlim=(-3.3, 3.3), ylim=(-3.3, 3.3))
    figure.legend(loc="outside lower center", ncols=3)
    return figure


def between() -> Figure:
    """The densities between a prior and a posterior, and the ways of particles through them."""

    def moments(share):
        precision = 1 + share / NOISE**2
        return share * OBSERVED / NOISE**2 / precision, 1 / np.sqrt(precision)

    figure = Figure(figsize=(9, 4.4), layout="constrained", facecolor="white")
    left, right = figure.subplots(1, 2)
    grid = np.linspace(-3.2, 3.2, 400)
    for share, alpha in ((0.0, 0.25), (0.05, 0.5), (0.2, 0.75), (1.0, 1.0)):
        mean, spread = moments(share)
        density = np.exp(-0.5 * ((grid - mean) / spread) ** 2) / spread / np.sqrt(2 * np.pi)
        left.fill_between(grid, density, color=OURS, alpha=0.12, linewidth=0)
        left.plot(grid, density, color=OURS, alpha=alpha, linewidth=2, label=f"t = {share:g}")
    left.legend(loc="upper left", fontsize=11)
    left.set(xlabel="unknown", ylabel="density", ylim=(0, 1.3), xlim=(-3.2, 3.2))
    left.set_title("Prior, densities between, posterior", color=INK, fontsize=12, loc="left")
    shares = np.linspace(0, 1, 200)
    means, spreads = np.array([moments(share) for share in shares]).T
    for z in np.array([NormalDist().inv_cdf((i + 0.5) / 24) for i in range(24)]):
        right.plot(shares, means + spreads * z, color=OURS, linewidth=0.9, alpha=0.7)
    right.axhline(OBSERVED, color="#d1541c", linewidth=1.2, linestyle="--")
    right.text(0.98, OBSERVED + 0.75, "observed", ha="right", color="#d1541c")
    right.set(xlabel="share t of the observation let in", ylabel="unknown", xlim=(0, 1))
    right.set_title("The way of 24 particles", color=INK, fontsize=12, loc="left")
    return figure


def evidence() -> Figure:
    """A mean that is 0.6, seen with noise 1: a model that knows it to be near 0.5, and one that knows nothing."""
    seen = 0.6 + np.random.default_rng(3).normal(size=40)
    models = {"prior N(0.5, 0.5²)": (0.5, 0.5, OURS), "prior N(0, 10²)": (0.0, 10.0, "#d1541c")}
    figure = Figure(figsize=(9, 4.2), layout="constrained", facecolor="white")
    left, right = figure.subplots(1, 2)
    grid = np.linspace(-12, 12, 500)
    for label, (mean, spread, colour) in models.items():
        precision, total = 1 / spread**2, 0.0
        density = np.exp(-0.5 * (grid - mean) ** 2 / (spread**2 + 1)) / np.sqrt(2 * np.pi * (spread**2 + 1))
        left.fill_between(grid, density, color=colour, alpha=0.3, linewidth=0, label=label)
        left.plot(grid, density, color=colour, linewidth=1.2)
        gained = []
        for y in seen:  # the log predictive of each, then Kalman's update
            variance = 1 / precision + 1
            total += -0.5 * np.log(2 * np.pi * variance) - 0.5 * (y - mean) ** 2 / variance
            mean = (precision * mean + y) / (precision + 1)
            precision += 1
            gained.append(total)
        right.plot(np.arange(1, 41), gained, color=colour, label=label)
    left.axvline(seen[0], color=INK, linewidth=1, linestyle="--")
    left.text(seen[0] + 0.4, 0.33, "the first one", color=INK)
    left.set_title("What each model expected", color=INK, fontsize=12, loc="left")
    right.set_title("Log evidence so far", color=INK, fontsize=12, loc="left")
    left.set(xlabel="observation", ylabel="predictive density", ylim=(0, 0.38))
    right.set(xlabel="observations", ylabel="nats")
    right.legend(fontsize=11)
    return figure


def changed() -> Figure:
    """A level that jumps after forty observations: a model in which it stands still, and its own log predictive."""
    seen = np.random.default_rng(7).normal(size=60) + 3.0 * (np.arange(60) >= 40)
    mean, precision, gained = 0.0, 1 / 9, []
    for y in seen:
        variance = 1 / precision + 1
        gained.append(-0.5 * np.log(2 * np.pi * variance) - 0.5 * (y - mean) ** 2 / variance)
        mean = (precision * mean + y) / (precision + 1)
        precision += 1
    figure = Figure(figsize=(8, 5.0), layout="constrained", facecolor="white")
    above, below = figure.subplots(2, 1, sharex=True)
    above.plot(np.arange(1, 61), seen, "o", color="#5a606b", markersize=4)
    above.set(ylabel="observation")
    below.bar(np.arange(1, 61), gained, color=OURS, width=0.8)
    expected = -0.5 * np.log(2 * np.pi) - 0.5
    below.axhline(expected, color=TRUTH, linewidth=1.2, linestyle="--")
    below.text(1, -8, "dashed: the average, if the model is right", color=TRUTH)
    below.set(ylabel="log predictive (nats)", xlabel="observations", ylim=(min(gained) - 0.5, 0.3))
    for axis in (above, below):
        axis.axvline(40.5, color="#d1541c", linewidth=1, linestyle="--")
    above.text(39.8, above.get_ylim()[1], "the level jumps", color="#d1541c", ha="right", va="top")
    return figure


def adaptive() -> Figure:
    """What is tried in turn when an observation comes in."""
    figure = Figure(figsize=(10, 2.9), layout="constrained", facecolor="white")
    axis = figure.subplots()
    axis.set(xlim=(0, 10), ylim=(0, 2.7))
    axis.axis("off")
    ways = (
        ("closed form", "linear and Gaussian\nso far", "exact"),
        ("weigh", "enough particles\nstill count", "9 rows of 10"),
        ("flow", "an affine map leaves\nweights all but equal", "no resampling"),
        ("temper", "the row by shares:\nresample and move", "for all else"),
    )
    for i, (name, when, what) in enumerate(ways):
        x = 0.25 + 2.45 * i
        box = {"boxstyle": "round,pad=0.5", "facecolor": OURS, "edgecolor": "none", "alpha": 0.25 + 0.2 * i}
        axis.text(x + 0.9, 1.9, f"{i + 1}. {name}", ha="center", va="center", fontsize=14, color=INK, bbox=box)
        axis.text(x + 0.9, 1.05, when, ha="center", va="center", color="#3b4049")
        axis.text(x + 0.9, 0.4, what, ha="center", va="center", color=TRUTH, style="italic")
        if i:
            arrow = {"arrowstyle": "->", "color": "#8a909b"}
            axis.annotate("", (x + 0.08, 1.9), (x - 0.72, 1.9), arrowprops=arrow)
            axis.text(x - 0.32, 2.1, "else", ha="center", color="#8a909b", fontsize=11)
    return figure


def _posterior(axis, label: str = "") -> None:
    precision = np.eye(2) + np.outer(DIRECTION, DIRECTION) / NOISE**2
    mean = np.linalg.solve(precision, DIRECTION * OBSERVED / NOISE**2)
    root = np.linalg.cholesky(np.linalg.inv(precision))
    turn = np.linspace(0, 2 * np.pi, 200)
    for mass in (0.5, 0.9):
        ring = mean + np.sqrt(-2 * np.log(1 - mass)) * np.column_stack([np.cos(turn), np.sin(turn)]) @ root.T
        axis.plot(*ring.T, color=TRUTH, linewidth=1.2, label=label if mass == 0.5 else "")


if __name__ == "__main__":
    main()
