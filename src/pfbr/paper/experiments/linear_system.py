"""What the experiments with a linear dynamical system share: the system, and methods with many numbers of particles."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax

from pfbr.inference.method import Method
from pfbr.io.records import Records
from pfbr.judging.evaluate import evaluate, true_draws
from pfbr.models import LinearDynamics
from pfbr.models.base import Model
from pfbr.paper.contract import Run
from pfbr.paper.metrics import RESAMPLED, paper_metrics, resampled_first
from pfbr.paper.streams import draw_streams

CASE = "system"


@dataclasses.dataclass(frozen=True)
class SystemSettings:
    """Each field with its reason."""

    dim: int  # of the paper's system
    system_seed: int = 0  # of the random matrices A and B, where the user gives none
    num_streams: int = 25  # as in the paper
    num_stages: int = 25  # idem
    num_draws: int = 500  # true draws behind a cross entropy
    mmd_draws: int = 250  # true draws behind an MMD², whose cost is their square


class System(NamedTuple):
    """The paper's system or a user's `own`, and where its records go."""

    model: Model
    dim: int
    own: bool
    records: Records


def system_of(run: Run) -> System:
    s: SystemSettings = run.settings
    own = run.system is not None
    model: Any = run.system or LinearDynamics.random(s.system_seed, s.dim)
    dim = int(model.dim)
    return System(model, dim, own, run.case(CASE, dim=dim, own_system=own))


def evaluate_counts(
    run: Run,
    system: System,
    methods: Mapping[int, Mapping[str, Method]],
    *,
    kernels: Sequence[str],
    training_seconds: Mapping[str, float],
    costs: bool,
) -> None:
    """The methods of every number of particles, in the order given, all on the same streams."""
    s: SystemSettings = run.settings
    streams = draw_streams(run, system.model, s.num_streams, s.num_stages)
    metrics = {**paper_metrics(system.dim, kernels, s.mmd_draws), RESAMPLED: resampled_first}
    truth_key, run_key = jax.random.split(jax.random.key(run.seed))
    for count, chosen in methods.items():
        evaluate(
            system.model,
            streams,
            chosen,
            key=run_key,
            num_particles=count,
            truth=true_draws(system.model, streams, count, key=truth_key, num_draws=s.num_draws),
            seed=run.seed,
            metrics=metrics,
            training_seconds=training_seconds,
            costs=costs,
            records=system.records,
            progress=run.progress(f"{count} particles: "),
        )
