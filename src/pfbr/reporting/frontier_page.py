"""The frontier's records to one HTML page and a figure: error against CPU time, and who wins where by how much."""

import dataclasses
import math
from pathlib import Path

from pfbr.errors import FileError
from pfbr.io.records import Measurement, Records
from pfbr.judging.frontier.measure import ERROR, MILLISECONDS, OURS, TRUTH, WORST
from pfbr.judging.frontier.problems import PROBLEMS
from pfbr.reporting.figures import draw_figure
from pfbr.reporting.html import write_page
from pfbr.reporting.parts import LOOKS, Chart, Chooser, Finding, Page, Series, Table

FROM = 0.5  # milliseconds: nobody waits for less
FIGURE = "frontier"
OWN = {"auto": "pfbr", "gaussian": "pfbr-gaussian"}  # whose looks are known by other names
LABELS = {"auto": "pfbr, default method (ours)", "gaussian": "pfbr, bare affine flow (ours)"}


def label(method: str) -> str:
    return LABELS.get(method) or LOOKS[method].label


@dataclasses.dataclass(frozen=True)
class Point:
    """A method with a number of particles."""

    method: str
    particles: int
    milliseconds: float
    error: float
    spread: float
    worst: float


def frontier_page(directory: Path) -> Path:
    """Draw `index.html`, `frontier.svg` and `frontier.png` in the directory of the records; return the page's path."""
    records = Records(directory)
    measured = {(m.metric, m.method, m.num_particles): m for m in records.measurements()}
    points = {name: points_of(name, measured) for name in PROBLEMS}
    points = {name: found for name, found in points.items() if found}
    if not points:
        raise FileError(f"{directory} holds nothing to draw. Run `pfbr bench --frontier --out DIR` first.")
    charts: dict[tuple[str, ...], Chart] = {
        (PROBLEMS[name].title,): chart(name, found) for name, found in points.items()
    }
    draw_figure(directory, FIGURE, list(charts.values()))
    settings = records.settings
    truths = [measured[(f"{TRUTH}: {name}", "truth", None)].value for name in points]
    page = Page(
        title="The frontier: error against time",
        lead="Every method follows the same streams with 64 particles, then four times as many, and so on until an "
        "update takes too long. Down and to the left is better; the staircase is the best that anybody reaches.",
        findings=[finding(name, found) for name, found in points.items()],
        parts=[
            Chooser("Error against time", "Root mean square over stages, mean over streams.", ("problem",), charts),
            table(points),
        ],
        figures={},
        facts=[
            f"{settings['streams']} streams a problem, seeds from {settings['seed']}; CPU milliseconds of one update, "
            "median over streams, without compilation, on this machine.",
            f"The truth is exact, a grid, or itself right to {max(truths):.3f} posterior standard deviations; for "
            "Lorenz-63 it is the simulated state, from which the best filter is a fixed distance away.",
        ],
    )
    return write_page(directory / "index.html", page)


def points_of(name: str, measured: dict[tuple, Measurement]) -> list[Point]:
    """All of one problem, ours first, each method by its number of particles."""
    found = []
    for (metric, method, particles), m in measured.items():
        if metric == f"{ERROR}: {name}" and particles is not None:
            at = lambda word, method=method, particles=particles: measured[(f"{word}: {name}", method, particles)].value
            found.append(Point(method, particles, at(MILLISECONDS), m.value, m.error or 0.0, at(WORST)))
    order = {method: rank for rank, method in enumerate(OURS)}
    return sorted(found, key=lambda p: (order.get(p.method, len(order)), p.method, p.particles))


def staircase(points: list[Point]) -> list[tuple[float, float]]:
    """The best error that is reached within each time."""
    best, steps = math.inf, []
    for point in sorted(points, key=lambda p: (p.milliseconds, p.error)):
        if point.error < best:
            best = point.error
            steps.append((point.milliseconds, best))
    if steps:
        steps.append((max(p.milliseconds for p in points), best))
    return steps


def chart(name: str, points: list[Point]) -> Chart:
    shown = [p for p in points if math.isfinite(p.error)]
    series = []
    for method in dict.fromkeys(p.method for p in shown):
        own = sorted((p for p in shown if p.method == method), key=lambda p: p.milliseconds)
        x, y = [p.milliseconds for p in own], [p.error for p in own]
        series.append(Series(OWN.get(method, method), x, y, label=label(method)))
    problem = PROBLEMS[name]
    return Chart(
        problem.title,
        "CPU milliseconds an update",
        f"error of the mean ({problem.unit})",
        series,
        x_scale="log",
        y_scale="log",
        frontier=staircase(shown),
    )


def reached(points: list[Point], milliseconds: float) -> Point | None:
    """The best within a time."""
    within = [p for p in points if p.milliseconds <= milliseconds and math.isfinite(p.error)]
    return min(within, key=lambda p: p.error, default=None)


def finding(name: str, points: list[Point]) -> Finding:
    """Where a rival is farthest ahead of us, from half a millisecond on."""
    ours = [p for p in points if p.method in OURS]
    rivals = [p for p in points if p.method not in OURS]
    title = PROBLEMS[name].title
    title = title[0].upper() + title[1:]
    behind: list[tuple[float, float, Point, Point]] = []
    for time in sorted({max(p.milliseconds, FROM) for p in points}):
        mine, other = reached(ours, time), reached(rivals, time)
        if mine is not None and other is not None:
            behind.append((mine.error / max(other.error, 1e-12), time, mine, other))
    if not behind:
        return Finding(f"{title}: nothing to compare from {FROM} ms upwards.")
    ratio, time, mine, other = max(behind, key=lambda b: b[0])
    if ratio <= 1.0:
        closest = f"at the closest, {time:.2g} ms, {mine.error:.3g} against {other.error:.3g} of {label(other.method)}"
        return Finding(f"{title}: ours is on the frontier from {FROM} ms upwards ({closest}).", True)
    return Finding(
        f"{title}: {label(other.method)} wins by a factor of {ratio:.2f} at {time:.2g} ms an update ({other.error:.3g} "
        f"with {other.particles:,} particles against {mine.error:.3g} with {mine.particles:,}).",
        False,
    )


def table(points: dict[str, list[Point]]) -> Table:
    rows, methods = [], []
    for name, found in points.items():
        for p in found:
            lost = not math.isfinite(p.error)
            error = "lost" if lost else f"{p.error:.3g} ± {p.spread:.2g}"
            worst = "lost" if not math.isfinite(p.worst) else f"{p.worst:.3g}"
            rows.append(
                [PROBLEMS[name].title, label(p.method), f"{p.particles:,}", f"{p.milliseconds:.3f}", error, worst]
            )
            methods.append(OWN.get(p.method, p.method))
    columns = ["problem", "method", "particles", "CPU ms an update", "error, mean ± standard error", "worst stream"]
    return Table("All that was measured", "“Lost”: not finite on at least one stream.", columns, rows, methods)
