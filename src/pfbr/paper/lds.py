"""The paper's hidden Markov experiment: a linear dynamical system, every stage, and any number of particles."""

import dataclasses
from itertools import product

import jax

from pfbr.baselines import BootstrapSMC, EnKF, Exact, KernelFilter, Prior
from pfbr.inference.operator import gaussian_operator
from pfbr.judging.evaluate import evaluate, reference
from pfbr.metrics.mmd import KERNELS
from pfbr.models import LinearDynamics
from pfbr.paper.contract import Run
from pfbr.paper.judging import RESAMPLED, draw_streams, paper_judges, resampled_first, tuned
from pfbr.paper.trained import Recipe, obtain

CASE = "system"
RIVALS = ("smc", "enkf", "kmcf")
KMCF = [
    KernelFilter(num_pairs=400, bandwidth=b, smoothing=s, regularisation=r)
    for b, s, r in product((0.3, 0.5, 1.0), (1e-3,), (1e-4, 1e-3, 1e-2))
]


@dataclasses.dataclass(frozen=True)
class LDSSettings:
    """Each field with its reason."""

    dim: int = 2  # as in the paper
    system_seed: int = 0  # of the random matrices A and B, where the user gives none
    num_streams: int = 25  # as in the paper
    num_stages: int = 25  # idem
    counts: tuple[int, ...] = (16, 64, 256, 1024, 4096)  # particles
    shown: int = 256  # particles in the figures over stages
    num_draws: int = 500  # true draws behind a cross entropy
    mmd_draws: int = 250  # true draws behind an MMD², whose cost is their square
    tuning_streams: int = 8  # on which the kernel filter is tuned
    training_particles: int = 1024  # one operator for all counts, as in the paper
    training_steps: int = 500  # about three minutes on one core
    training_length: int = 10  # the system forgets within a few steps: short streams show all that happens


FULL = LDSSettings()
QUICK = dataclasses.replace(FULL, num_streams=5, num_stages=10, counts=(16, 256), tuning_streams=2)


def recipe(settings: LDSSettings = FULL) -> Recipe:
    """The paper's operator for the system."""
    options = {"num_particles": settings.training_particles, "length": settings.training_length, "batch": 1}
    return Recipe(f"lds-{settings.dim}-paper", "paper", settings.training_steps, options)


def run(run: Run) -> None:
    """Every method with every number of particles on the same streams."""
    s: LDSSettings = run.settings
    model = run.system or LinearDynamics.random(s.system_seed, s.dim)
    dim = int(model.dim)
    records = run.case(CASE, dim=dim, own_system=run.system is not None)
    plan = recipe(dataclasses.replace(s, dim=dim))
    paper = obtain(run, plan, model, own_model=run.system is not None)
    tuning = {"num_particles": s.shown, "length": s.num_stages, "num_tasks": s.tuning_streams}
    methods = {
        "pfbr-gaussian": gaussian_operator(),
        "pfbr-paper": paper.method,
        "smc": BootstrapSMC(),
        "enkf": EnKF(),
        "kmcf": tuned(run, records, "kmcf", KMCF, model, **tuning),
        "exact": Exact(),
    }
    streams = draw_streams(run, model, s.num_streams, s.num_stages)
    judges = {**paper_judges(dim, list(KERNELS), s.mmd_draws), RESAMPLED: resampled_first}
    truth_key, run_key = jax.random.split(jax.random.key(run.seed))
    for n in sorted(s.counts, key=lambda n: (n != s.shown, n)):  # first the one that is looked at most

        def progress(what: str, done: int, total: int, n: int = n) -> None:
            run.say(f"{n} particles: {what} ({done}/{total})")
            run.tick()

        evaluate(
            run_key,
            {**methods, "prior": Prior()} if n == s.shown else methods,
            model,
            streams,
            num_particles=n,
            truth=reference(truth_key, model, streams, n, s.num_draws),
            seed=run.seed,
            judges=judges,
            training_seconds={"pfbr-paper": paper.seconds},
            costs=False,
            records=records,
            progress=progress,
        )
