"""Table 1 on a page: the table, error against time with its frontier, every stage, and who wins."""

from typing import Any

from pfbr.io.records import Measurement
from pfbr.judging.evaluate import ABOVE, SCORE, SECONDS, TRAINING
from pfbr.paper.contract import Results
from pfbr.paper.experiments.linear_system import CASE
from pfbr.paper.experiments.table1 import KERNEL
from pfbr.paper.metrics import INTEGRALS, RESAMPLED, mmd_name
from pfbr.paper.views.measured import YARDSTICKS, Measured, best_rows, cell, listed, number, stage_chart, standing
from pfbr.reporting.parts import LOOKS, Chart, Chooser, Finding, Page, Series, Table

MEAN = INTEGRALS["x"]  # the distance of the particles' mean from Kalman's
# The paper's own figures (its Table 1), scored by a truth that was not reset between sequences: only to be compared
# with each other.
PUBLISHED = {
    ("pfbr-paper", 256): 16.56,
    ("smc", 256): 26.78,
    ("aesmc-mlp", 256): 19.66,
    ("aesmc-gru", 256): 19.38,
    ("aesmc-mlp", 4096): 17.63,
    ("aesmc-gru", 4096): 17.24,
    ("smc", 8192): 17.60,
}


def view(results: Results) -> Page:
    """The table, error against time with the frontier, every stage, and who wins."""
    s = results.settings
    records = results.case(CASE)
    measured, dim, own = Measured(records.measurements()), records.settings["dim"], records.settings["own_system"]
    n = s["equal"]
    baselines = [name for name in measured.methods(ABOVE, n) if name not in YARDSTICKS and not name.startswith("pfbr")]
    findings: list[Finding] = []
    for ours in ("pfbr-gaussian", "pfbr-paper"):
        findings += standing(measured, SCORE, ours, baselines, n, where="Cross entropy", unit="nats", signed=False)
    measures: dict[str, tuple[str, str, dict[str, Any]]] = {
        "above exact": (ABOVE, "nats above as many exact draws", {"y_scale": "symlog", "linear_to": 0.1}),
        "cross entropy": (SCORE, "cross entropy (nats)", {"y_scale": "linear"}),
        "error of the mean": (MEAN, "distance of the mean from the true one", {"y_scale": "log"}),
        "MMD²": (mmd_name(KERNEL), f"MMD², {KERNEL} kernel", {"y_scale": "symlog", "linear_to": 1e-3}),
    }
    over_time: dict[tuple[str, ...], Chart] = {
        (word,): _against_time(measured, metric, label, scale) for word, (metric, label, scale) in measures.items()
    }
    findings += _frontier_findings(measured) + _faster_and_better(measured, n)
    shown = [name for name in LOOKS if name != "prior"]
    per_stage: dict[tuple[str, ...], Chart] = {
        (word,): stage_chart(
            measured, metric, n, title=f"d = {dim}, {n} particles", y_label=label, methods=shown, **scale
        )
        for word, (metric, label, scale) in measures.items()
    }
    streams = measured.whole("exact", SCORE, n)
    assert streams is not None  # the first method of every run
    return Page(
        title=f"Table 1: learned proposals, learned flows, and time, in {dim} dimensions",
        lead=(
            f"A linear dynamical system in {dim} dimensions{', yours' if own else ''}: bootstrap SMC, SMC with learned "
            f"proposals (AESMC) and with the best possible one, the ensemble Kalman filter, and the flow, on "
            f"{streams.num_sequences} unseen streams. Lower is better; {n} independent draws of the exact posterior "
            f"score {number(streams.value)}."
        ),
        findings=findings,
        parts=[
            _table(measured, n, own),
            Chooser(
                "Error against time",
                "Each point is a method with the number of particles beside it; time is CPU time of one update, "
                "compiled. Down and to the left is better.",
                ("measure",),
                over_time,
            ),
            Chooser(
                "Every stage",
                f"{n} particles; the band is ± one standard error over streams.",
                ("measure",),
                per_stage,
            ),
        ],
        figures={
            "error_against_time": list(over_time.values()),
            "stages": list(per_stage.values()),
        },
        facts=[
            "The training-free operator is exact for linear-Gaussian models; the paper's operator "
            f"was trained with {s['training_steps']} steps, AESMC with {s['aesmc_steps']}, seed 0, each on one core. "
            "SMC is scored with its weights; “resampled first” is the score after turning weights into copies.",
            "“Above as many exact draws” compares with exact draws of the same number: more particles make any density "
            "estimate better, the exact one too.",
        ]
        + (
            []
            if own
            else [
                "The paper's figures come from another random system, and from a truth that was not reset "
                "between sequences: compare them with each other only."
            ]
        ),
    )


def _rows(measured: Measured) -> list[tuple[str, int]]:
    return [(name, n) for name in measured.methods(SCORE) for n in measured.particle_counts(name, SCORE)]


def _table(measured: Measured, n: int, own: bool) -> Table:
    rows = _rows(measured)
    exact_score = measured.whole("exact", SCORE, n)
    assert exact_score is not None

    def cost(name: str, count: int, metric: str, scale: float, digits: int) -> str:
        found = measured.whole(name, metric, count)
        return "–" if found is None or found.value == 0 else number(scale * found.value, digits)

    cells = []
    for name, count in rows:
        score = measured.whole(name, SCORE, count)
        assert score is not None
        line = [
            LOOKS[name].label,
            f"{count:,}",
            cost(name, count, TRAINING, 1 / 60, 1),
            cost(name, count, SECONDS, 1e3, 2),
            cell(score, signed=False),
            number(score.value - exact_score.value, signed=True),
            cell(measured.whole(name, ABOVE, count)),
            cell(measured.whole(name, MEAN, count), signed=False),
            _if_other(measured.whole(name, RESAMPLED, count), score),
        ]
        cells.append(line if own else [*line, f"{PUBLISHED[name, count]:.2f}" if (name, count) in PUBLISHED else "–"])
    scores = [measured.whole(name, SCORE, count) for name, count in rows]
    equal = [count == n and name not in YARDSTICKS for name, count in rows]
    columns = [
        "method",
        "particles",
        "training (min)",
        "CPU per update (ms)",
        "cross entropy",
        f"above {n} exact draws",
        "above as many exact draws",
        "error of the mean",
        "resampled first",
        *([] if own else ["in the paper"]),
    ]
    return Table(
        "The table",
        f"Mean over all stages and streams ± standard error over streams. Bold: the best with {n} particles.",
        columns,
        cells,
        [name for name, _ in rows],
        frozenset((row, 4) for row in best_rows(scores, equal)),
    )


def _if_other(m: Measurement | None, score: Measurement) -> str:
    """A score after resampling, where that makes a difference: particles of equal weight stay as they are."""
    return "–" if m is None or abs(m.value - score.value) < 1e-4 else cell(m, signed=False)


def _costed(measured: Measured, metric: str) -> list[tuple[str, int, float, float]]:
    """(method, particles, milliseconds, error) of every method that could be used."""
    found = []
    for name, count in _rows(measured):
        cost, error = measured.whole(name, SECONDS, count), measured.whole(name, metric, count)
        if name not in YARDSTICKS and cost is not None and error is not None:
            found.append((name, count, 1e3 * cost.value, error.value))
    return found


def frontier(spots: list[tuple[str, int, float, float]]) -> list[tuple[str, int, float, float]]:
    """Those that nothing faster beats, fastest first."""
    kept: list[tuple[str, int, float, float]] = []
    for spot in sorted(spots, key=lambda spot: (spot[2], spot[3])):
        if not kept or spot[3] < kept[-1][3]:
            kept.append(spot)
    return kept


def _against_time(measured: Measured, metric: str, label: str, scale: dict) -> Chart:
    spots = _costed(measured, metric)
    series = []
    for name in dict.fromkeys(spot[0] for spot in spots):
        own = [spot for spot in spots if spot[0] == name]
        series.append(Series(name, [o[2] for o in own], [o[3] for o in own], tags=[f"{o[1]:,}" for o in own]))
    edge = [(spot[2], spot[3]) for spot in frontier(spots)]
    return Chart("", "CPU time of one update (ms)", label, series, x_scale="log", points=True, frontier=edge, **scale)


def _frontier_findings(measured: Measured) -> list[Finding]:
    findings = []
    by = {"cross entropy": SCORE, "nats above as many exact draws": ABOVE, "the error of the mean": MEAN}
    for word, metric in by.items():
        edge = frontier(_costed(measured, metric))
        names = [f"{LOOKS[name].label} with {count:,} particles ({ms:.2g} ms)" for name, count, ms, _ in edge]
        ours = any(name.startswith("pfbr") for name, *_ in edge)
        findings.append(Finding(f"On the frontier of {word} against CPU time: {listed(names)}.", ours))
    return findings


def _faster_and_better(measured: Measured, n: int) -> list[Finding]:
    """Baselines with any number of particles that leave us no reason to be chosen, by cross entropy."""
    spots = _costed(measured, SCORE)
    findings = []
    for ours, count, ms, error in spots:
        if not ours.startswith("pfbr") or count != n:
            continue
        ahead = [
            f"{LOOKS[name].label} with {other:,} particles ({number(lower)} nats, {quick:.2g} ms)"
            for name, other, quick, lower in spots
            if quick < ms and lower < error and not name.startswith("pfbr")
        ]
        if ahead:
            mine = f"{LOOKS[ours].label} with {n} ({number(error)} nats, {ms:.2g} ms)"
            findings.append(Finding(f"Both faster and lower in cross entropy than {mine}: {listed(ahead)}.", False))
    return findings
