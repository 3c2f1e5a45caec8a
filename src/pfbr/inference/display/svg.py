"""Small pictures inside a line of text: the density of one number, or how it went over time; plain SVG, no library."""

from typing import Any

import numpy as np

from pfbr.inference.display.columns import Column, density_curve, limits
from pfbr.inference.display.looks import BANDS, ON_ANY_GROUND


class Picture(str):
    """Marks that may stand in a page as they are: numbers alone went into them, and no text of a user's."""


def density(column: Column, width: int = 120, height: int = 26) -> Picture:
    """The density of draws (n,), its central 90 % darker."""
    at, tall = density_curve(column)
    if not len(at):
        return Picture()
    across = 1 + (width - 2) * (at - at[0]) / (at[-1] - at[0])
    up, floor = height - 1 - (height - 3) * tall, np.full_like(across, height - 1.0)
    low, median, high = column.quantile([(1 - BANDS[1]) / 2, 0.5, (1 + BANDS[1]) / 2])
    inner = (at >= low) & (at <= high)
    parts = [_area(across, floor, up, 0.35), _area(across[inner], floor[inner], up[inner], 0.8)]
    return _svg(width, height, f"median {median:.4g}", *parts)


def fan(column: Column, x: Any, width: int = 160, height: int = 26) -> Picture:
    """Median and central intervals of draws (T, n) over x (T,)."""
    half = [band / 2 for band in BANDS]
    levels = column.quantile([0.5, *(0.5 - h for h in half), *(0.5 + h for h in half)])
    if len(column.values) == 0 or not np.isfinite(levels).all():
        return Picture()
    across = np.asarray(x).astype(float)
    across = np.arange(len(across)) if len(across) < 2 or across[-1] <= across[0] else across
    across = 1 + (width - 2) * (across - across[0]) / max(across[-1] - across[0], 1e-12)
    low, high = limits(levels[len(half)], levels[-1]) or (levels.min(), levels.max())
    levels = np.clip(levels, low, high)
    up = height - 1 - (height - 2) * (levels - low) / max(high - low, 1e-12)
    bands = [_area(across, up[1 + i], up[1 + len(half) + i], 0.5 - 0.25 * i) for i in reversed(range(len(half)))]
    line = f'<polyline points="{_points(across, up[0])}" fill="none" stroke="{ON_ANY_GROUND}" stroke-width="1.3"/>'
    return _svg(width, height, f"from {low:.4g} to {high:.4g}", *bands, line)


def _area(x: np.ndarray, low: np.ndarray, high: np.ndarray, opacity: float) -> str:
    around = f"{_points(x, high)} {_points(x[::-1], low[::-1])}"
    return f'<polygon points="{around}" fill="{ON_ANY_GROUND}" fill-opacity="{opacity:.2f}"/>'


def _points(x: np.ndarray, y: np.ndarray) -> str:
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))


def _svg(width: int, height: int, title: str, *parts: str) -> Picture:
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
    return Picture(f"{head}<title>{title}</title>{''.join(parts)}</svg>")
