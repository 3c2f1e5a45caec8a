"""Colours and type of every figure of the house, as plain words and numbers."""

from typing import Any

INK, GRID = "#16181d", "#eceef1"
OURS, SEEN, TRUTH = "#1f63d2", "#5a606b", "#6d4bb8"  # what is believed, what was seen, what is so
ON_ANY_GROUND = "#4a8af0"  # what is believed, in a page whose ground may be white or black
BANDS = (0.5, 0.9)  # central intervals that are shaded
STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.edgecolor": "#c9ccd3",
    "axes.labelcolor": "#3b4049",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": "#5a606b",
    "ytick.color": "#5a606b",
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "svg.fonttype": "none",
    "svg.hashsalt": "pfbr",  # the same records give the same file
}
