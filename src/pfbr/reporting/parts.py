"""What a page is made of: charts, tables and sentences as data, before anyone draws them."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Protocol


@dataclasses.dataclass(frozen=True)
class Look:
    """A method's name for readers, its colour on white and on black, and the pattern of its line."""

    label: str
    light: str
    dark: str
    dash: str = ""  # lengths of strokes and gaps; nothing: a full line


# One look a method in all experiments. Ours are blue; what is not a method (the truth, the prior) has no hue.
LOOKS: dict[str, Look] = {
    "pfbr": Look("pfbr (ours, trained)", "#1f63d2", "#6ea8ff"),
    "pfbr-meta": Look("pfbr (ours, learned over tasks)", "#0b2a6f", "#c9dcff"),
    "pfbr-gaussian": Look("pfbr (ours, training-free)", "#2b9be8", "#79c6ff"),
    "pfbr-paper": Look("pfbr (the paper's operator)", "#0c9a9a", "#43d3d0", "7 3"),
    "exact": Look("exact draws", "#16181d", "#eef0f4", "2 3"),
    "prior": Look("the prior", "#8a909b", "#858d9b", "2 5"),
    "smc": Look("bootstrap SMC", "#d1541c", "#ff9a5c"),
    "smc-one-pass": Look("one-pass SMC", "#d1541c", "#ff9a5c"),
    "smc-optimal": Look("optimal-proposal SMC", "#a3341a", "#ff7b54", "7 3"),
    "aesmc-mlp": Look("AESMC, dense", "#8e44ad", "#c58be0"),
    "aesmc-gru": Look("AESMC, recurrent", "#b0478f", "#ec8ccb", "7 3"),
    "enkf": Look("ensemble Kalman filter", "#2e8b3d", "#6fd07e"),
    "daum-huang": Look("Daum–Huang flow", "#6b8e23", "#b5cf5f", "7 3"),
    "daum-huang-local": Look("Daum–Huang flow, localised", "#4f6b14", "#d2e48a", "4 2"),
    "ibis": Look("IBIS", "#b8860b", "#f0c24b"),
    "kbr": Look("kernel Bayes' rule", "#8c564b", "#cf9a8b"),
    "kmcf": Look("kernel Monte Carlo filter", "#8c564b", "#cf9a8b"),
    "svi": Look("streaming SVI", "#d6408a", "#ff93c2"),
    "svi-mean-field": Look("streaming SVI, mean field", "#c9a227", "#f5d76e", "7 3"),
    "sgld": Look("SGLD", "#7d1a12", "#ff8a7a", "4 2"),
    "svgd": Look("SVGD", "#5d6d7e", "#a9b8c6"),
    "pmd": Look("particle mirror descent", "#8e44ad", "#c58be0"),
    "npv": Look("nonparametric VI", "#2e8b3d", "#6fd07e", "7 3"),
    "truth": Look("the truth", "#6d4bb8", "#b79bf5", "6 4"),
}


@dataclasses.dataclass(frozen=True)
class Series:
    """One method in a chart: points, with standard errors where there are any. Values may be infinite or NaN."""

    method: str  # a key of LOOKS
    x: Sequence[float]
    y: Sequence[float]
    error: Sequence[float] | None = None
    tags: Sequence[str] = ()  # a word for each point, shown beside it
    label: str = ""  # in the legend; nothing: that of its look
    shade: bool = False  # only y ± error as a surface, without a line: where values ought to be
    marks: bool = False  # dots without a line, among other series that are lines


@dataclasses.dataclass(frozen=True)
class Chart:
    """Axes with names and units, and what is drawn between them.

    Scales are "linear", "log" or "symlog" (linear up to `linear_to`, logarithmic beyond, for distances that explode).
    `points` draws marks without lines; `frontier` is a staircase behind them.
    """

    title: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    x_scale: str = "linear"
    y_scale: str = "linear"
    linear_to: float = 1.0
    zero: str = ""  # what the line at zero means, where there is one
    y_limits: tuple[float, float] | None = None
    points: bool = False
    frontier: Sequence[tuple[float, float]] = ()


@dataclasses.dataclass(frozen=True)
class Chooser:
    """Charts in one frame, chosen by rows of buttons: `charts` maps one word a row to a chart."""

    title: str
    note: str
    rows: Sequence[str]  # what each row of buttons chooses, e.g. ("dimension", "measure")
    charts: Mapping[tuple[str, ...], Chart]
    first: tuple[str, ...] | None = None  # what is shown at the beginning; nothing: the first chart


@dataclasses.dataclass(frozen=True)
class Table:
    """Words and numbers, already written out; `methods` gives a row the colour of its method, `best` is set bold."""

    title: str
    note: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    methods: Sequence[str] = ()
    best: frozenset[tuple[int, int]] = frozenset()  # (row, column)


@dataclasses.dataclass(frozen=True)
class Picture:
    """A PNG that is part of the records, shown as it is."""

    title: str
    note: str
    alt: str
    png: bytes


@dataclasses.dataclass(frozen=True)
class Movie:
    """A slider over stages: every panel shows a density in the plane, particles, and the truth's contours."""

    title: str
    note: str
    data: Mapping  # see paper/views/mixture.py


@dataclasses.dataclass(frozen=True)
class Finding:
    """One sentence that the records say; `good` where it speaks for us, False where another wins, None for neither."""

    text: str
    good: bool | None = None


class Drawing(Protocol):
    """A figure that is not made of charts: draws itself when asked."""

    def __call__(self) -> Any: ...  # a matplotlib Figure


Part = Chooser | Table | Picture | Movie


@dataclasses.dataclass(frozen=True)
class Page:
    """All that a reader sees of an experiment. `figures` are also written as NAME.svg and NAME.png."""

    title: str
    lead: str
    findings: Sequence[Finding]
    parts: Sequence[Part]
    figures: Mapping[str, "Sequence[Chart] | Drawing"]
    facts: Sequence[str] = ()  # sentences at the end: how it was made
    looks: Mapping[str, Look] = dataclasses.field(default_factory=dict)  # of what is no method, beside LOOKS
