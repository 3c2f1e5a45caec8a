"""How the general map is trained, as one table; its file keeps it."""

import dataclasses

from pfbr.checks import checked_amount, checked_count
from pfbr.errors import InputError


@dataclasses.dataclass(frozen=True)
class Recipe:
    """Each field with its reason."""

    minutes: float = 14.0  # of learning; making the problems takes a few more
    seed: int = 0
    dims: tuple[int, ...] = (1, 2, 5, 10)  # what it learns there it can use in twenty
    problems: int = 1000  # in each dimension, made once and kept on disk, with five clouds each
    num_particles: int = 256  # in a cloud
    late: float = 0.4  # of the lessons begin on the way to the posterior, with a part of the observation in,
    moved: float = 0.5  # and of these so many with a cloud that the map itself made, not with exact draws
    held: int = 40  # problems a dimension that are never learned from: they choose the best weights
    batch: int = 6  # problems in one step of learning, for each dimension
    learning_rate: float = 3e-3  # Adam's, falling along a cosine to nothing
    average: float = 0.995  # of weights over steps: the result is their running mean
    judge_every: int = 100  # steps between two looks at the held problems, and two checkpoints

    def __post_init__(self):
        for name in ("problems", "num_particles", "held", "batch", "judge_every"):
            checked_count(name, getattr(self, name), least=1)
        for name in ("minutes", "learning_rate"):
            checked_amount(name, getattr(self, name), above=True)
        if self.problems <= self.held:
            raise InputError(f"`problems` must be more than the {self.held} held out; got {self.problems}.")
        if not self.dims or min(self.dims) < 1:
            raise InputError(f"`dims` must be numbers of unknowns, 1 or more; got {self.dims}.")
