"""An observation taken back is one with the inverse likelihood: a model in which to observe is to forget."""

from typing import Any

from pfbr.errors import InputError
from pfbr.models.base import Model, StateSpaceModel
from pfbr.typing import Observation, Point, Scalar


class InverseLikelihood(Model):
    """p(o | x)⁻¹ in the place of p(o | x), so that an update takes an earlier observation out of the posterior.

    A velocity that is linear in the log likelihood then runs backwards; one that reads the observation itself does not
    see the difference and cannot be downdated (`Velocity.reads_observation`).
    """

    model: Model

    def __init__(self, model: Model):
        if isinstance(model, StateSpaceModel):
            raise InputError("an earlier observation can be taken back only where the unknown does not move.")
        self.model = model

    @property
    def dim(self) -> int:
        return self.model.dim

    @property
    def unknowns(self):  # type: ignore[override]
        return self.model.unknowns

    def sample_prior(self, key) -> Point:
        return self.model.sample_prior(key)

    def log_prior(self, x: Point) -> Scalar:
        return self.model.log_prior(x)

    def log_likelihood(self, x: Point, observation: Observation, **given: Any) -> Scalar:
        return -self.model.log_likelihood(x, observation, **given)
