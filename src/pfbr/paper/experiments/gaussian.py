"""The paper's first experiment: the mean of a Gaussian in 2 to 8 dimensions, trained on 10 observations, asked 100."""

import dataclasses
from itertools import product

import jax

from pfbr.baselines import IBIS, EnKF, Exact, KernelBayes, OnePassSMC, Prior
from pfbr.inference.operator import gaussian_operator
from pfbr.judging.evaluate import evaluate, true_draws
from pfbr.models import GaussianMean
from pfbr.paper.contract import Run
from pfbr.paper.late_starts import LateStarts
from pfbr.paper.metrics import paper_metrics
from pfbr.paper.streams import draw_streams
from pfbr.paper.trained import Recipe, obtain
from pfbr.paper.tuned import tuned

KERNEL = "rbf"
BASELINES = ("smc-one-pass", "ibis", "kbr", "enkf")
KBR = [
    KernelBayes(num_pairs=400, bandwidth=b, smoothing=s, regularisation=r)
    for b, s, r in product((0.3, 0.5, 1.0), (1e-3,), (1e-4, 1e-3, 1e-2))
]
SMC = [OnePassSMC(threshold=t, bandwidth=b) for t, b in product((0.5,), (None, 0.1, 0.3))]


@dataclasses.dataclass(frozen=True)
class GaussianSettings:
    """Each field with its reason."""

    dims: tuple[int, ...] = (2, 3, 5, 8)  # as in the paper
    num_streams: int = 25  # idem
    num_stages: int = 100  # idem
    num_particles: int = 256  # idem
    observation_std: float = 3.0  # what the paper's figures come from; its text reads as a variance of 3
    num_draws: int = 500  # true draws behind a cross entropy: its noise is shared with that of the exact draws
    mmd_draws: int = 250  # true draws behind an MMD², whose cost is their square
    tuning_length: int = 40  # observations in a stream on which baselines are tuned
    tuning_streams: int = 4  # how many of those
    training_steps: int = 500  # of the paper's operator: one to two minutes of CPU time
    training_length: int = 10  # as in the paper
    latest_start: int = 90  # training streams begin after 0 to 90 earlier observations, as the paper's do


FULL = GaussianSettings()
QUICK = dataclasses.replace(
    FULL, dims=(8,), num_streams=5, num_stages=30, mmd_draws=200, tuning_length=10, tuning_streams=2
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
    paper = obtain(run, recipe(dim, s), model, families=lambda: (LateStarts(model, s.latest_start), None))
    tuning = {"num_particles": s.num_particles, "length": s.tuning_length, "num_tasks": s.tuning_streams}
    methods = {
        "pfbr-gaussian": gaussian_operator(),
        "pfbr-paper": paper.method,
        "smc-one-pass": tuned(run, records, "smc-one-pass", SMC, model, **tuning),
        "kbr": tuned(run, records, "kbr", KBR, model, **tuning),
        "ibis": IBIS(),
        "enkf": EnKF(),
        "exact": Exact(),
        "prior": Prior(),
    }
    streams = draw_streams(run, model, s.num_streams, s.num_stages)
    truth_key, run_key = jax.random.split(jax.random.fold_in(jax.random.key(run.seed), dim))
    evaluate(
        model,
        streams,
        methods,
        key=run_key,
        num_particles=s.num_particles,
        truth=true_draws(model, streams, s.num_particles, key=truth_key, num_draws=s.num_draws),
        seed=run.seed,
        metrics=paper_metrics(dim, [KERNEL], s.mmd_draws),
        training_seconds={"pfbr-paper": paper.seconds},
        costs=False,
        records=records,
        progress=run.progress(f"d = {dim}: "),
    )
