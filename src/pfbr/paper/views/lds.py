"""The linear dynamical system on a page: every measure over stages and over particle counts, and who wins."""

from typing import Any

from pfbr.judging.evaluate import ABOVE, SCORE
from pfbr.metrics.mmd import KERNELS
from pfbr.paper.contract import Results
from pfbr.paper.experiments.lds import BASELINES
from pfbr.paper.experiments.linear_system import CASE
from pfbr.paper.metrics import INTEGRALS, RESAMPLED, mmd_name
from pfbr.paper.tuned import choice_in_words
from pfbr.paper.views.measured import YARDSTICKS, Measured, best_rows, cell, stage_chart, standing
from pfbr.reporting.parts import LOOKS, Chart, Chooser, Finding, Page, Table

MEASURES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "above exact": (ABOVE, "nats above as many exact draws", {"y_scale": "symlog", "linear_to": 0.1}),
    "cross entropy": (SCORE, "cross entropy (nats)", {"y_scale": "symlog", "linear_to": 20.0}),
    **{
        f"MMD² {kernel}": (mmd_name(kernel), f"MMD², {kernel} kernel", {"y_scale": "symlog", "linear_to": 1e-3})
        for kernel in KERNELS
    },
    **{name: (name, f"error of {name}", {"y_scale": "log"}) for name in INTEGRALS.values()},
}


def view(results: Results) -> Page:
    """Each measure over stages and over particle counts, a table, and who wins."""
    s = results.settings
    records = results.case(CASE)
    measured, dim = Measured(records.measurements()), records.settings["dim"]
    n, counts = s["shown"], s["counts"]
    shown = [name for name in LOOKS if name != "prior"]
    charts: dict[tuple[str, ...], Chart] = {}
    for word, (metric, label, scale) in MEASURES.items():
        kept = [name for name in shown if not (metric == ABOVE and name == "exact")]
        zero: dict[str, Any] = {"zero": "as many exact draws"} if metric == ABOVE else {}
        charts["every stage", word] = stage_chart(
            measured, metric, n, title=f"{n} particles", y_label=label, methods=kept, **scale, **zero
        )
        if len(counts) > 1:
            series = [measured.per_count(name, metric) for name in kept if name in measured.methods(metric)]
            title = "mean of all stages"
            charts["number of particles", word] = Chart(
                title, "particles", label, series, x_scale="log", **scale, **zero
            )
    findings: list[Finding] = []
    for count in (n, *(c for c in (counts[0], counts[-1]) if c != n)):
        for ours in ("pfbr-gaussian", "pfbr-paper"):
            where = "Cross entropy, mean of all stages"
            findings += standing(measured, ABOVE, ours, BASELINES, count, where=where, unit="nats above exact")
    figures = {
        name: [
            charts[key]
            for word in words
            for key in (("every stage", word), ("number of particles", word))
            if key in charts
        ]
        for name, words in {
            "cross_entropy": ["above exact", "cross entropy"],
            "mmd": [f"MMD² {kernel}" for kernel in KERNELS],
            "integrals": list(INTEGRALS.values()),
        }.items()
    }
    return Page(
        title=f"A linear dynamical system in {dim} dimensions",
        lead=(
            f"x moves by x ← A x + ε and is seen as o = B x + δ"
            f"{', with your own A and B' if records.settings['own_system'] else ''}. Every method is scored after each "
            f"observation of {measured.whole('exact', ABOVE, n).num_sequences} unseen streams, with "  # type: ignore[union-attr]
            f"{', '.join(str(c) for c in counts)} particles. The paper's operator is one and the same at all counts, "
            f"trained with {s['training_particles']}."
        ),
        findings=findings,
        parts=[
            Chooser(
                "Every stage, and any number of particles",
                f"Mean over streams; the band is ± one standard error. Over stages: {n} particles. Lower is better.",
                ("against", "measure"),
                charts,
            ),
            _table(measured, counts),
            _second_table(measured, n),
        ],
        figures=figures,
        facts=_facts(results, measured),
    )


def _table(measured: Measured, counts: list[int]) -> Table:
    methods = [name for name in measured.methods(ABOVE) if name != "prior"]
    columns = [[measured.whole(name, ABOVE, n) for name in methods] for n in counts]
    eligible = [name not in YARDSTICKS for name in methods]
    best = {(row, c + 1) for c, column in enumerate(columns) for row in best_rows(column, eligible)}
    rows = [[LOOKS[name].label, *(cell(column[r]) for column in columns)] for r, name in enumerate(methods)]
    return Table(
        "Nats above as many exact draws, mean over all stages",
        "± standard error over streams; bold: the best, and what lies within its noise.",
        ["method", *(f"{n} particles" for n in counts)],
        rows,
        methods,
        frozenset(best),
    )


def _second_table(measured: Measured, n: int) -> Table:
    methods = measured.methods(ABOVE, n)
    metrics = {
        "cross entropy": SCORE,
        "resampled first": RESAMPLED,
        "MMD² rbf": mmd_name("rbf"),
        **{f"error of {name}": name for name in INTEGRALS.values()},
    }
    rows = [
        [LOOKS[name].label, *(cell(measured.whole(name, metric, n), signed=False) for metric in metrics.values())]
        for name in methods
    ]
    return Table(
        f"All measures with {n} particles, mean over all stages",
        "“Resampled first” scores SMC as it is often looked at: after its weights have been turned into copies.",
        ["method", *metrics],
        rows,
        methods,
    )


def _facts(results: Results, measured: Measured) -> list[str]:
    s = results.settings
    return [
        "The training-free operator is exact for linear-Gaussian models. The paper's operator was trained with "
        f"{s['training_steps']} steps of {s['training_particles']} particles on streams of {s['training_length']} "
        f"observations, seed 0. The kernel filter was tuned on other streams: {choice_in_words(measured.all, 'kmcf')}.",
        "MMD² leaves out the pairs of a point with itself, so that it may be negative: particles that lie more evenly "
        "than random draws are. With more than 512 particles it takes pairs within random blocks of 512.",
    ]
