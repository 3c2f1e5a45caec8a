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
