"""How the general operator is trained, as one table; the file of an operator keeps it."""

import dataclasses

from pfbr.checks import checked_amount, checked_count
from pfbr.errors import InputError


@dataclasses.dataclass(frozen=True)
class Recipe:
    """Each field with its reason."""

    minutes: float = 14.0  # of learning; making problems and rolling clouds forward take as long again
    seed: int = 0
    dims: tuple[int, ...] = (1, 2, 5, 10)  # what it learns there it can use in twenty
    problems: int = 1000  # in each dimension, made once and kept on disk, with five clouds each
    num_particles: int = 256  # in a cloud
    points: int = 40  # of a cloud that are learned from: neighbours say nearly the same
    rounds: int = 5  # how often clouds are rolled forward anew by what was learned so far
    rolled_problems: int = 900  # a dimension and round, rolled forward by the flow
    late: float = 0.3  # of these begin on the way to the posterior, with a part of the observation in
    held: int = 40  # problems a dimension that are never learned from: they choose the round
    batch: int = 16  # steps of clouds in one of learning, for each dimension
    learning_rate: float = 2e-3  # Adam's, falling along a cosine to nothing
    average: float = 0.998  # of weights over steps: the result is their running mean
    steps: int = 4  # of the flow

    def __post_init__(self):
        for name in ("problems", "num_particles", "points", "rounds", "rolled_problems"):
            checked_count(name, getattr(self, name), least=1)
        for name in ("held", "batch", "steps"):
            checked_count(name, getattr(self, name), least=1)
        for name in ("minutes", "learning_rate"):
            checked_amount(name, getattr(self, name), above=True)
        if self.problems <= self.held:
            raise InputError(f"`problems` must be more than the {self.held} held out; got {self.problems}.")
        if not self.dims or min(self.dims) < 1:
            raise InputError(f"`dims` must be numbers of unknowns, 1 or more; got {self.dims}.")
