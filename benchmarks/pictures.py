"""The pictures of the concept pages: `python -m benchmarks.pictures` writes them into docs/images."""

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from pfbr.reporting.figures import INK, STYLE, save_figure

IMAGES = Path(__file__).resolve().parents[1] / "docs/images"
OURS, TRUTH = "#1f63d2", "#6d4bb8"
ANGLE = 0.6  # of the direction that the observation is about
DIRECTION = np.array([np.cos(ANGLE), np.sin(ANGLE)])
OBSERVED, NOISE = 1.6, 0.35


def main() -> None:
    with matplotlib.rc_context({**STYLE, "font.size": 10}):
        save_figure(particles(), IMAGES / "concept_particles.png")
        save_figure(flow(), IMAGES / "concept_flow.png")
        save_figure(evidence(), IMAGES / "concept_evidence.png")
        save_figure(adaptive(), IMAGES / "concept_adaptive.png")


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
    figure = Figure(figsize=(10, 4.0), layout="constrained", facecolor="white")
    axes = figure.subplots(1, 3, sharex=True, sharey=True)
    size = 1 / np.sum(weights**2)
    titles = ("the prior: 160 draws", f"weighed: worth {size:.0f} equal ones", "moved: 160 equal ones again")
    sizes = (14, 14 * weights * len(points), 14)
    clouds = (points, points, carried(points, 1.0))
    for axis, title, cloud, area in zip(axes, titles, clouds, sizes, strict=True):
        axis.scatter(*cloud.T, s=area, color=OURS, alpha=0.6, linewidths=0)
        _posterior(axis)
        axis.set_title(title, color=INK, fontsize=10)
        axis.set(xlabel="first unknown", xlim=(-3.3, 3.3), ylim=(-3.3, 3.3), aspect="equal")
    axes[0].set_ylabel("second unknown")
    return figure


def flow() -> Figure:
    points = prior_draws(90)
    shares = np.concatenate([[0.0], np.geomspace(0.01, 1.0, 24)])
    paths = np.stack([carried(points, share) for share in shares])
    figure = Figure(figsize=(5.8, 5.8), layout="constrained", facecolor="white")
    axis = figure.subplots()
    axis.plot(paths[..., 0], paths[..., 1], color=OURS, alpha=0.35, linewidth=0.9)
    axis.scatter(*paths[0].T, s=9, color="#8a909b", label="before the observation", zorder=3)
    axis.scatter(*paths[-1].T, s=13, color=OURS, label="after it", zorder=4)
    _posterior(axis, label="the exact posterior, 50 % and 90 %")
    axis.set(xlabel="first unknown", ylabel="second unknown", aspect="equal", xlim=(-3.3, 3.3), ylim=(-3.3, 3.3))
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return figure


def evidence() -> Figure:
    """A mean that is 0.6, seen with noise 1: a model that knows it to be near 0.5, and one that knows nothing."""
    seen = 0.6 + np.random.default_rng(3).normal(size=40)
    models = {"prior N(0.5, 0.5²)": (0.5, 0.5, OURS), "prior N(0, 10²)": (0.0, 10.0, "#d1541c")}
    figure = Figure(figsize=(10, 3.8), layout="constrained", facecolor="white")
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
    left.text(seen[0] + 0.4, 0.33, "the first observation", color=INK)
    left.set_title("What each model expected", color=INK, fontsize=10, loc="left")
    right.set_title("Log evidence so far", color=INK, fontsize=10, loc="left")
    left.set(xlabel="observation", ylabel="predictive density", ylim=(0, 0.38))
    right.set(xlabel="observations", ylabel="nats")
    right.legend(frameon=False)
    return figure


def adaptive() -> Figure:
    """What is tried in turn when an observation comes in."""
    figure = Figure(figsize=(10, 2.7), layout="constrained", facecolor="white")
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
        axis.text(x + 0.9, 1.9, f"{i + 1}. {name}", ha="center", va="center", fontsize=12, color=INK, bbox=box)
        axis.text(x + 0.9, 1.05, when, ha="center", va="center", color="#3b4049")
        axis.text(x + 0.9, 0.4, what, ha="center", va="center", color=TRUTH, style="italic")
        if i:
            arrow = {"arrowstyle": "->", "color": "#8a909b"}
            axis.annotate("", (x + 0.08, 1.9), (x - 0.72, 1.9), arrowprops=arrow)
            axis.text(x - 0.32, 2.1, "else", ha="center", color="#8a909b", fontsize=9)
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
