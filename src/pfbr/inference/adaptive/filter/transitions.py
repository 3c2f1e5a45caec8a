"""The density before an observation as a mixture of the model's own transitions, where that is as good as kernels.

Where the noise of the dynamics is wide compared with the gaps between particles, 1/N Σ p(x | x_n) is right in the tails
too, where kernels have none. With little noise it is a heap of spikes. Particles decide, each scored without its
family: if transitions are more likely than kernels out of sample, transitions it is.
"""

from collections.abc import Callable

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Bool

from pfbr.inference.adaptive.filter.cloud import Cloud
from pfbr.inference.adaptive.filter.density import CloudDensity, judged_density
from pfbr.inference.adaptive.filter.settings import Settings
from pfbr.typing import Key, PerParticle, Points

BEHIND = 0.1  # nats by which transitions may fall behind out of sample: only they are right in the tails

LogTransitions = Callable[[Points, Points], Array]  # to (m, d), from (k, d) -> (m, k)


class Before(eqx.Module):
    """The particles before the prediction, and the log transitions from them."""

    points: Points
    log_transitions: LogTransitions = eqx.field(static=True)


class PredictiveDensity(eqx.Module):
    """Kernels around the predicted particles, or transitions from those before, whichever fits."""

    kernels: CloudDensity
    before: Before | None
    by_transitions: Bool[Array, ""]

    def __call__(self, points: Points) -> PerParticle:
        """Up to a constant: only ratios are ever needed."""
        if self.before is None:
            return self.kernels.relative(points)
        return jax.lax.cond(self.by_transitions, lambda p: self._mixture(p), lambda p: self.kernels.relative(p), points)

    def varied(self, width: Array, keep: Array) -> "PredictiveDensity":
        return PredictiveDensity(self.kernels.varied(width, keep), self.before, self.by_transitions)

    def beyond(self, points: Points) -> PerParticle:
        """The share of the density at each point that no particle vouches for."""
        if self.before is None:
            return self.kernels.beyond(points)
        return jax.lax.cond(
            self.by_transitions, lambda p: jnp.zeros(p.shape[0], p.dtype), lambda p: self.kernels.beyond(p), points
        )

    def _mixture(self, points: Points) -> PerParticle:
        start = self.before.points[self.kernels.origin]  # type: ignore[union-attr]
        return jax.nn.logsumexp(self.before.log_transitions(points, start) + self.kernels.log_weights, axis=1)  # type: ignore[union-attr]


def predictive_density(
    key: Key, predicted: Cloud, before: Before | None, settings: Settings, log_chances: PerParticle
) -> PredictiveDensity:
    """`log_chances`: of each particle to be one of the centres where there are many."""
    kernels, judges = judged_density(key, predicted, settings, log_chances)
    if before is None:
        return PredictiveDensity(kernels, None, jnp.array(False))
    pairs = before.log_transitions(judges.points, before.points[kernels.origin]) + kernels.log_weights
    left = jax.nn.logsumexp(jnp.where(judges.others, kernels.log_weights, -jnp.inf), axis=1)
    scores = jax.nn.logsumexp(jnp.where(judges.others, pairs, -jnp.inf), axis=1) - left
    ahead = jnp.where(jnp.isfinite(scores), scores, -1e4) - judges.scores
    return PredictiveDensity(kernels, before, judges.share @ ahead > -BEHIND)
