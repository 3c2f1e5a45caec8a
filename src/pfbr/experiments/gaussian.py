"""The paper's first experiment: the mean of a Gaussian in 2 to 8 dimensions, trained on 10 observations, asked 100."""

import dataclasses
from itertools import product

import jax

from pfbr.baselines import IBIS, EnKF, Exact, KernelBayes, NeverLearning, OnePassSMC
from pfbr.evaluation import ABOVE, SCORE, evaluate, reference
from pfbr.experiments.contract import Experiment, Results, Run
from pfbr.experiments.judging import INTEGRALS, TUNED, described, draw_streams, mmd_name, paper_judges, tuned
from pfbr.experiments.later_starts import LateStarts
from pfbr.experiments.parts import LOOKS, Chart, Chooser, Finding, Page, Table
from pfbr.experiments.trained import Recipe, obtain
from pfbr.experiments.views import OURS, YARDSTICKS, Measured, best_rows, cell, stage_chart, standing
from pfbr.models import GaussianMean
from pfbr.operator import gaussian_operator

KERNEL = "rbf"
RIVALS = ("smc-one-pass", "ibis", "kbr", "enkf")
KBR = [
    KernelBayes(num_pairs=400, bandwidth=b, smoothing=s, regularisation=r)
    for b, s, r in product((0.3, 0.5, 1.0), (1e-3, 1e-2), (1e-4, 1e-3, 1e-2))
]
SMC = [OnePassSMC(threshold=t, bandwidth=b) for t, b in product((0.5, 1.0), (None, 0.1, 0.3))]


@dataclasses.dataclass(frozen=True)
class GaussianSettings:
    """Each field with its reason."""

    dims: tuple[int, ...] = (2, 3, 5, 8)  # as in the paper
    num_streams: int = 25  # idem
    num_stages: int = 100  # idem
    num_particles: int = 256  # idem
    observation_std: float = 3.0  # what the paper's figures come from; its text reads as a variance of 3
    num_draws: int = 1000  # true draws behind a cross entropy: its noise is shared with that of the exact draws
    mmd_draws: int = 500  # true draws behind an MMD², whose cost is their square
    tuning_length: int = 40  # observations in a stream on which rivals are tuned
    tuning_streams: int = 4  # how many of those
    training_steps: int = 1500  # of the paper's operator: four to five minutes on one core
    training_length: int = 10  # as in the paper
    latest_start: int = 90  # training streams begin after 0 to 90 earlier observations, as the paper's do


FULL = GaussianSettings()
QUICK = dataclasses.replace(
    FULL, dims=(2, 8), num_streams=5, num_stages=30, num_draws=500, mmd_draws=200, tuning_length=10, tuning_streams=2
)


def recipe(dim: int, settings: GaussianSettings = FULL) -> Recipe:
    """The paper's operator for one dimension."""
    options = {"num_particles": settings.num_particles, "length": settings.training_length, "batch": 4}
    return Recipe(f"gaussian-{dim}-paper", "paper", settings.training_steps, options)


def run(run: Run) -> None:
    """Every method on the same streams, dimension by dimension."""
    for dim in run.settings.dims:
        _run_dimension(run, dim)


def _run_dimension(run: Run, dim: int) -> None:
    s: GaussianSettings = run.settings
    model = GaussianMean(dim, observation_std=s.observation_std)
    records = run.case(f"d{dim}", dim=dim)
    paper = obtain(run, recipe(dim, s), model, family=LateStarts(model, s.latest_start))
    tuning = {"num_particles": s.num_particles, "length": s.tuning_length, "num_tasks": s.tuning_streams}
    methods = {
        "pfbr-gaussian": gaussian_operator(),
        "pfbr-paper": paper.method,
        "smc-one-pass": tuned(run, records, "smc-one-pass", SMC, model, **tuning),
        "kbr": tuned(run, records, "kbr", KBR, model, **tuning),
        "ibis": IBIS(),
        "enkf": EnKF(),
        "exact": Exact(),
        "never-learning": NeverLearning(),
    }
    streams = draw_streams(run, model, s.num_streams, s.num_stages)
    truth_key, run_key = jax.random.split(jax.random.fold_in(jax.random.key(run.seed), dim))
    truth = reference(truth_key, model, streams, s.num_particles, s.num_draws)

    def progress(what: str, done: int, total: int) -> None:
        run.say(f"d = {dim}: {what} ({done}/{total})")
        run.tick()

    evaluate(
        run_key,
        methods,
        model,
        streams,
        num_particles=s.num_particles,
        truth=truth,
        seed=run.seed,
        judges=paper_judges(dim, [KERNEL], s.mmd_draws),
        training_seconds={"pfbr-paper": paper.seconds},
        records=records,
        progress=progress,
    )


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
    figures["appendix_d2"] = [charts[f"d = {dims[0]}", name] for name in ("cross entropy", "MMD²", "E xᵀAx")]
    findings: list[Finding] = []
    for dim in reversed(dims):
        for ours in ("pfbr-gaussian", "pfbr-paper"):
            findings += standing(
                cases[dim], ABOVE, ours, RIVALS, n, where=f"d = {dim}, mean of all stages", unit="nats above exact"
            )
    return Page(
        title="The mean of a Gaussian, in 2 to 8 dimensions",
        lead=(
            f"x ~ N(0, I), observations o ~ N(x, {s['observation_std']:g}² I). The paper's operator was trained on "
            f"streams of {s['training_length']} observations; every method is judged after each of {s['num_stages']} "
            f"observations of {s['num_streams']} unseen streams, with {n} particles. Zero is what as many independent "
            "draws of the exact posterior score; particles that lie more evenly can score below."
        ),
        findings=findings,
        parts=[
            Chooser(
                "After each observation",
                "Mean over streams; the band is ± one standard error. Lower is better.",
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
    shown = [name for name in LOOKS if name != "never-learning"]

    def chart(metric: str, y_label: str, *, without_exact: bool = False, **scale) -> Chart:
        methods = [name for name in shown if not (without_exact and name == "exact")]
        return stage_chart(measured, metric, n, title=f"d = {dim}", y_label=y_label, methods=methods, **scale)

    distance = {"y_scale": "symlog", "linear_to": 0.1, "zero": f"{n} exact draws"}
    charts = {
        "above exact": chart(ABOVE, "cross entropy above exact draws (nats)", without_exact=True, **distance),
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
        f"{n} particles, {s['num_streams']} streams of {s['num_stages']}, ± standard error over streams; bold: no "
        f"other method is lower by two standard errors. The last column: d = {last} after the last observation.",
        ["method", *(f"d = {dim}" for dim in columns), f"d = {last}, stage {s['num_stages']}"],
        rows,
        methods,
        frozenset(best),
    )


def _facts(results: Results, cases: dict[int, Measured]) -> list[str]:
    s = results.settings
    choices = []
    for dim, measured in cases.items():
        for name, candidates in (("smc-one-pass", SMC), ("kbr", KBR)):
            found = measured.whole(name, TUNED, s["num_particles"])
            if found is not None:
                choices.append(f"d = {dim}: {LOOKS[name].label}, {described(candidates, int(found.value))}")
    return [
        "The training-free operator is exact for linear-Gaussian models, and is where training of our own operator "
        f"starts. The paper's operator was trained with {s['training_steps']} steps on streams of "
        f"{s['training_length']} observations that begin after 0 to {s['latest_start']} earlier ones, seed 0.",
        "Rivals were tuned on streams of their own: " + "; ".join(choices) + ".",
        f"{', '.join(LOOKS[name].label for name in OURS[1:])} and the rivals saw the same streams.",
    ]


GAUSSIAN = Experiment("gaussian", "The mean of a Gaussian", FULL, QUICK, run, view)
