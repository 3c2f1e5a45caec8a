"""The Gaussian experiment on a page: every dimension, measure and stage, and who wins."""

from pfbr.judging.evaluate import ABOVE, SCORE
from pfbr.paper.contract import Results
from pfbr.paper.experiments.gaussian import BASELINES, KERNEL
from pfbr.paper.metrics import INTEGRALS, mmd_name
from pfbr.paper.tuned import choice_in_words
from pfbr.paper.views.measured import OURS, YARDSTICKS, Measured, best_rows, cell, stage_chart, standing
from pfbr.reporting.parts import LOOKS, Chart, Chooser, Finding, Page, Table


def view(results: Results) -> Page:
    """Charts for every dimension and measure, a table of means, and who wins."""
    s = results.settings
    n, dims = s["num_particles"], s["dims"]
    cases = {dim: Measured(results.case(f"d{dim}").measurements()) for dim in dims}
    charts: dict[tuple[str, ...], Chart] = {
        (f"d = {dim}", name): chart for dim in dims for name, chart in _charts(cases[dim], dim, n).items()
    }
    figures = {
        name: [charts[f"d = {dim}", measure] for dim in dims]
        for name, measure in {
            "cross_entropy": "above exact",
            "mmd": "MMD²",
            "integral_x": "E x",
            "integral_quadratic": "E xᵀAx",
            "integral_bilinear": "E (Ax+a)ᵀ(Bx+b)",
        }.items()
    }
    if 2 in dims:  # what the paper's appendix shows
        figures["appendix_d2"] = [charts["d = 2", name] for name in ("cross entropy", "MMD²", "E xᵀAx")]
    findings: list[Finding] = []
    for dim in reversed(dims):
        for ours in ("pfbr-gaussian", "pfbr-paper"):
            findings += standing(cases[dim], ABOVE, ours, BASELINES, n, where=f"d = {dim}", unit="nats above exact")
    return Page(
        title="The mean of a Gaussian, in 2 to 8 dimensions",
        lead=(
            f"x ~ N(0, I), observations o ~ N(x, {s['observation_std']:g}² I). The paper's operator was trained on "
            f"streams of {s['training_length']} observations; every method is scored after each of {s['num_stages']} "
            f"observations of {s['num_streams']} unseen streams, with {n} particles. Zero is what as many independent "
            "draws of the exact posterior score; particles that lie more evenly can score below."
        ),
        findings=findings,
        parts=[
            Chooser(
                "After each observation",
                "Mean over streams; the band is ± one standard error. Lower is better; lines end at 100 nats.",
                ("dimension", "measure"),
                charts,
                (f"d = {dims[-1]}", "above exact"),
            ),
            _table(cases, n, s),
        ],
        figures=figures,
        facts=_facts(results, cases),
    )


def _charts(measured: Measured, dim: int, n: int) -> dict[str, Chart]:
    shown = [name for name in LOOKS if name != "prior"]

    def chart(metric: str, y_label: str, *, without_exact: bool = False, **scale) -> Chart:
        methods = [name for name in shown if not (without_exact and name == "exact")]
        return stage_chart(measured, metric, n, title=f"d = {dim}", y_label=y_label, methods=methods, **scale)

    limits = (-0.3, 100.0)  # what leaves them is lost, and its size says no more
    distance = {"y_scale": "symlog", "linear_to": 0.1, "zero": f"{n} exact draws", "y_limits": limits}
    charts = {
        "above exact": chart(ABOVE, "nats above exact draws", without_exact=True, **distance),
        "cross entropy": chart(SCORE, "cross entropy (nats)", y_scale="symlog", linear_to=20.0),
        "MMD²": chart(mmd_name(KERNEL), f"MMD², {KERNEL} kernel", y_scale="symlog", linear_to=1e-3),
    }
    return {**charts, **{name: chart(name, f"error of {name}", y_scale="log") for name in INTEGRALS.values()}}


def _table(cases: dict[int, Measured], n: int, s: dict) -> Table:
    methods = next(iter(cases.values())).methods(ABOVE, n)
    columns = {dim: [measured.whole(name, ABOVE, n) for name in methods] for dim, measured in cases.items()}
    eligible = [name not in YARDSTICKS for name in methods]
    best = {(row, c + 1) for c, dim in enumerate(columns) for row in best_rows(columns[dim], eligible)}
    last = max(cases)
    ends = [cases[last].stages(name, ABOVE, n) for name in methods]
    rows = [
        [LOOKS[name].label, *(cell(columns[dim][r]) for dim in columns), cell(ends[r][-1] if ends[r] else None)]
        for r, name in enumerate(methods)
    ]
    return Table(
        "Nats above exact sampling, mean over all stages",
        f"{n} particles, {s['num_streams']} streams of {s['num_stages']}, ± standard error over streams; bold: "
        f"the best, and what lies within its noise. The last column: d = {last} after the last observation.",
        ["method", *(f"d = {dim}" for dim in columns), f"d = {last}, stage {s['num_stages']}"],
        rows,
        methods,
        frozenset(best),
    )


def _facts(results: Results, cases: dict[int, Measured]) -> list[str]:
    s = results.settings
    choices = [
        f"d = {dim}: {LOOKS[name].label}, {choice_in_words(measured.all, name)}"
        for dim, measured in cases.items()
        for name in ("smc-one-pass", "kbr")
    ]
    return [
        "The training-free operator is exact for linear-Gaussian models, and is where training of our own operator "
        f"starts. The paper's operator was trained with {s['training_steps']} steps on streams of "
        f"{s['training_length']} observations that begin after 0 to {s['latest_start']} earlier ones, seed 0.",
        "Baselines were tuned on streams of their own: " + "; ".join(choices) + ".",
        f"{', '.join(LOOKS[name].label for name in OURS[1:])} and the baselines saw the same streams.",
    ]
