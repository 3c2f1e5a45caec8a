"""The paper's Table 1: ten dimensions, particle filters with learned and best proposals, error against time."""

import dataclasses

from pfbr.baselines import BootstrapSMC, EnKF, Exact, OptimalSMC, Prior
from pfbr.inference.operator import gaussian_operator
from pfbr.paper.contract import Run
from pfbr.paper.experiments.linear_system import SystemSettings, evaluate_counts, system_of
from pfbr.paper.trained import AESMC_KINDS, Recipe, obtain

KERNEL = "rbf"


@dataclasses.dataclass(frozen=True)
class Table1Settings(SystemSettings):
    """Beyond those of the system, each field with its reason."""

    dim: int = 10  # as in the paper
    num_draws: int = 1000  # in ten dimensions a cross entropy needs more true draws
    mmd_draws: int = 500  # and so does an MMD²
    equal: int = 256  # particles at which all methods are compared
    # beyond those 256: the paper's counts for its baselines, and enough of the others to draw the frontier
    more: tuple[tuple[str, int], ...] = (
        ("pfbr-gaussian", 64),
        ("pfbr-gaussian", 1024),
        ("pfbr-paper", 1024),
        ("smc", 8192),
        ("aesmc-mlp", 4096),
        ("aesmc-gru", 4096),
        ("smc-optimal", 4096),
        ("enkf", 64),
        ("enkf", 1024),
    )
    training_steps: int = 700  # of the paper's operator
    training_length: int = 25  # as in the paper
    aesmc_steps: int = 3000  # at least as much time as the paper's operator had


FULL = Table1Settings()
QUICK = dataclasses.replace(
    FULL,
    num_streams=5,
    num_stages=10,
    num_draws=500,
    mmd_draws=200,
    more=(("pfbr-gaussian", 64), ("smc", 1024), ("enkf", 64)),
)


def recipes(dim: int, settings: Table1Settings = FULL) -> dict[str, Recipe]:
    """What has to be trained for a system of this dimension."""
    length = settings.training_length
    options = {"num_particles": settings.equal, "length": length, "batch": 2}
    return {
        "pfbr-paper": Recipe(f"lds-{dim}-paper", "paper", settings.training_steps, options),
        **{kind: Recipe(f"lds-{dim}-{kind}", kind, settings.aesmc_steps, {"length": length}) for kind in AESMC_KINDS},
    }


def run(run: Run) -> None:
    """Every row of the table, count by count."""
    s: Table1Settings = run.settings
    system = system_of(run)
    trained = {
        name: obtain(run, plan, system.model, own_model=system.own) for name, plan in recipes(system.dim, s).items()
    }
    methods = {
        "pfbr-gaussian": gaussian_operator(),
        **{name: made.method for name, made in trained.items()},
        "smc": BootstrapSMC(),
        "smc-optimal": OptimalSMC(),
        "enkf": EnKF(),
        "exact": Exact(),
        "prior": Prior(),
    }
    more = {n: {name: methods[name] for name, m in s.more if m == n} for n in sorted({n for _, n in s.more})}
    evaluate_counts(
        run,
        system,
        {s.equal: methods, **more},
        kernels=[KERNEL],
        training_seconds={name: made.seconds for name, made in trained.items()},
        costs=True,
    )
