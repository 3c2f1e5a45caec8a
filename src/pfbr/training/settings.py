"""The settings of a training run."""

import dataclasses
import math

from pfbr.checks import check_memory, checked_amount, checked_count, shortened
from pfbr.errors import InputError


@dataclasses.dataclass(frozen=True)
class TrainingSettings:
    """Each field with its reason."""

    minutes: float | None = None  # the budget in time; five minutes where neither budget is given
    steps: int | None = None  # or in steps: the only one that repeats exactly
    num_particles: int = 256  # particles in training; any number can be used afterwards
    length: int = 10  # observations in a task: the loss of a model without dynamics costs its square
    batch: int = 4  # tasks a step: several priors and truths steady the gradient
    learning_rate: float = 2e-3  # Adam's, falling along a cosine to a twentieth over the budget
    clip: float = 1.0  # largest norm of one task's gradient, so that a single hard task does not decide the step
    through_stages: bool = False  # gradients through all stages: slower, and not better on what we measured
    priors: str = "model"  # "model", or "generative": mixtures from a Dirichlet process stand in for the prior
    segments: int = 1  # > 1: streams are this many times `length`, cut; a task starts at a random cut
    validate_every: int = 50  # steps between validations, each of which also writes the checkpoint
    validation_tasks: int = 8  # held-out tasks, the same ones every time
    max_skipped: float = 0.5  # give up when more than this share of an interval's tasks had no finite gradient

    def __post_init__(self):
        for name in ("num_particles", "length", "batch", "segments", "validate_every", "validation_tasks"):
            checked_count(name, getattr(self, name), least=2 if name == "num_particles" else 1)
        if self.steps is not None:
            checked_count("steps", self.steps, least=1)
        for name in ("minutes", "learning_rate", "clip"):
            if name != "minutes" or self.minutes is not None:
                checked_amount(name, getattr(self, name), above=True)
        checked_amount("max_skipped", self.max_skipped, most=1.0)
        if not isinstance(self.through_stages, bool):
            raise InputError(f"`through_stages` must be True or False; got {shortened(self.through_stages)}.")
        if self.priors not in ("model", "generative"):
            raise InputError(f'`priors` must be "model" or "generative"; got {shortened(self.priors)}.')

    def check_memory(self, dim: int) -> None:
        """Refuse a training that would not fit into this machine, before anything is computed."""
        each = 4 * self.num_particles * dim  # bytes of one set of particles
        for name, count in (("num_particles", 1), ("batch", self.batch), ("validation_tasks", self.validation_tasks)):
            size = max(count, 1) * self.length * each
            check_memory(f"`{name}` = {getattr(self, name)}", size, "Choose a smaller number.")

    @property
    def seconds(self) -> float:
        """The budget in seconds; without any budget, five minutes."""
        if self.minutes is not None:
            return 60.0 * self.minutes
        return 300.0 if self.steps is None else math.inf
