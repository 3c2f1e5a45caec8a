"""One observation as a function on the unknown: log p(o | ·) and its score, at many points."""

import equinox as eqx
import jax

from pfbr.models.base import Model
from pfbr.typing import Observation, PerParticle, Points


class Likelihood(eqx.Module):
    """x ↦ log p(o | x), for the observation at hand."""

    model: Model
    observation: Observation

    def values(self, points: Points) -> PerParticle:
        return jax.vmap(self.model.log_likelihood, (0, None))(points, self.observation)

    def values_and_scores(self, points: Points) -> tuple[PerParticle, Points]:
        """The values and their gradients with respect to the points."""
        return jax.vmap(jax.value_and_grad(self.model.log_likelihood), (0, None))(points, self.observation)

    def scores(self, points: Points) -> Points:
        return self.values_and_scores(points)[1]
