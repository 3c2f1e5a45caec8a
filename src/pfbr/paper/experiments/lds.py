"""The paper's hidden Markov experiment: a linear dynamical system, every stage, and any number of particles."""

import dataclasses
from itertools import product

from pfbr.baselines import BootstrapSMC, EnKF, Exact, KernelFilter, Prior
from pfbr.inference.operator import gaussian_operator
from pfbr.metrics.mmd import KERNELS
from pfbr.paper.contract import Run
from pfbr.paper.experiments.linear_system import SystemSettings, evaluate_counts, system_of
from pfbr.paper.trained import Recipe, obtain
from pfbr.paper.tuned import tuned

BASELINES = ("smc", "enkf", "kmcf")
KMCF = [
    KernelFilter(num_pairs=400, bandwidth=b, smoothing=s, regularisation=r)
    for b, s, r in product((0.3, 0.5, 1.0), (1e-3,), (1e-4, 1e-3, 1e-2))
]


@dataclasses.dataclass(frozen=True)
class LDSSettings(SystemSettings):
    """Beyond those of the system, each field with its reason."""

    dim: int = 2  # as in the paper
    counts: tuple[int, ...] = (16, 64, 256, 1024, 4096)  # particles
    shown: int = 256  # particles in the figures over stages
    tuning_streams: int = 8  # on which the kernel filter is tuned
    training_particles: int = 1024  # one operator for all counts, as in the paper
    training_steps: int = 500  # about three minutes on one core
    training_length: int = 10  # the system forgets within a few steps: short streams show all that happens


FULL = LDSSettings()
QUICK = dataclasses.replace(FULL, num_streams=5, num_stages=10, counts=(16, 256), tuning_streams=2)


def recipe(dim: int, settings: LDSSettings = FULL) -> Recipe:
    """The paper's operator for a system of this dimension."""
    options = {"num_particles": settings.training_particles, "length": settings.training_length, "batch": 1}
    return Recipe(f"lds-{dim}-paper", "paper", settings.training_steps, options)


def run(run: Run) -> None:
    """Every method with every number of particles on the same streams."""
    s: LDSSettings = run.settings
    system = system_of(run)
    paper = obtain(run, recipe(system.dim, s), system.model, own_model=system.own)
    tuning = {"num_particles": s.shown, "length": s.num_stages, "num_tasks": s.tuning_streams}
    methods = {
        "pfbr-gaussian": gaussian_operator(),
        "pfbr-paper": paper.method,
        "smc": BootstrapSMC(),
        "enkf": EnKF(),
        "kmcf": tuned(run, system.records, "kmcf", KMCF, system.model, **tuning),
        "exact": Exact(),
    }
    first_shown = sorted(s.counts, key=lambda n: (n != s.shown, n))  # what is looked at most is measured first
    evaluate_counts(
        run,
        system,
        {n: {**methods, "prior": Prior()} if n == s.shown else methods for n in first_shown},
        kernels=list(KERNELS),
        training_seconds={"pfbr-paper": paper.seconds},
        costs=False,
    )
