"""The paper's Table 1: ten dimensions, particle filters with learned and best proposals, error against time."""

import dataclasses

import jax

from pfbr.baselines import BootstrapSMC, EnKF, Exact, OptimalSMC, Prior
from pfbr.inference.operator import gaussian_operator
from pfbr.judging.evaluate import evaluate, reference
from pfbr.models import LinearDynamics
from pfbr.paper.contract import Run
from pfbr.paper.judging import RESAMPLED, draw_streams, paper_judges, resampled_first
from pfbr.paper.trained import Recipe, obtain

CASE, KERNEL = "system", "rbf"


@dataclasses.dataclass(frozen=True)
class Table1Settings:
    """Each field with its reason."""

    dim: int = 10  # as in the paper
    system_seed: int = 0  # of the random matrices A and B, where the user gives none
    num_streams: int = 25  # as in the paper
    num_stages: int = 25  # idem
    num_draws: int = 1000  # true draws behind a cross entropy
    mmd_draws: int = 500  # true draws behind an MMD²
    equal: int = 256  # particles at which all methods are compared
    # beyond those 256: the paper's counts for its rivals, and enough of the others to draw the frontier
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


def recipes(settings: Table1Settings = FULL) -> dict[str, Recipe]:
    """What has to be trained for the system."""
    d, length = settings.dim, settings.training_length
    paper = {"num_particles": settings.equal, "length": length, "batch": 2}
    return {
        "pfbr-paper": Recipe(f"lds-{d}-paper", "paper", settings.training_steps, paper),
        **{
            kind: Recipe(f"lds-{d}-{kind}", kind, settings.aesmc_steps, {"length": length})
            for kind in ("aesmc-mlp", "aesmc-gru")
        },
    }


def run(run: Run) -> None:
    """Every row of the table, count by count."""
    s: Table1Settings = run.settings
    model = run.system or LinearDynamics.random(s.system_seed, s.dim)
    dim, own = int(model.dim), run.system is not None
    records = run.case(CASE, dim=dim, own_system=own)
    trained = {
        name: obtain(run, plan, model, own_model=own) for name, plan in recipes(dataclasses.replace(s, dim=dim)).items()
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
    streams = draw_streams(run, model, s.num_streams, s.num_stages)
    judges = {**paper_judges(dim, [KERNEL], s.mmd_draws), RESAMPLED: resampled_first}
    truth_key, run_key = jax.random.split(jax.random.key(run.seed))
    for n in (s.equal, *sorted({count for _, count in s.more})):
        chosen = methods if n == s.equal else {name: methods[name] for name, count in s.more if count == n}

        def progress(what: str, done: int, total: int, n: int = n) -> None:
            run.say(f"{n} particles: {what} ({done}/{total})")
            run.tick()

        evaluate(
            run_key,
            chosen,
            model,
            streams,
            num_particles=n,
            truth=reference(truth_key, model, streams, n, s.num_draws),
            seed=run.seed,
            judges=judges,
            training_seconds={name: made.seconds for name, made in trained.items()},
            records=records,
            progress=progress,
        )
