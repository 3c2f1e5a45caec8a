"""The learned map in the place of a velocity: an observation is taken in one stride, and no solver follows it."""

from typing import NoReturn

import jax
from jax import numpy as jnp

from pfbr.errors import InputError
from pfbr.flow.likelihood import Likelihood
from pfbr.flow.transport.known import Known
from pfbr.flow.transport.transport import Transport, Transported
from pfbr.flow.velocities.base import Velocity
from pfbr.typing import Key, PerParticle, Points, Scalar, Support


class MapVelocity(Velocity):
    """For the solver "map" alone. It needs the scores of the density before the observation, and says about what they
    are after it."""

    transport: Transport

    def prepare(self, key: Key, support: Support, likelihood: Likelihood) -> None:
        return None

    def __call__(self, t: Scalar, points: Points, support: Support, context: None, likelihood: Likelihood) -> NoReturn:
        raise InputError('the learned map has no velocity: its solver is "map", in one step.')

    def moved(self, points: Points, log_density: PerParticle, scores: Points, likelihood: Likelihood) -> Transported:
        """Points that the map takes nowhere stay where they are, with what they have."""
        equal = jnp.full(points.shape[0], 1 / points.shape[0], points.dtype)
        known = Known(jax.lax.stop_gradient(log_density), jax.lax.stop_gradient(scores))
        there = self.transport(points, equal, known, likelihood.values_and_scores, with_scores=True)
        assert there.scores is not None
        fine = jnp.isfinite(there.log_det) & jnp.all(jnp.isfinite(there.points) & jnp.isfinite(there.scores), axis=1)
        return Transported(
            jnp.where(fine[:, None], there.points, points),
            jnp.where(fine, there.log_det, 0),
            jnp.where(fine[:, None], there.scores, scores),
        )
