"""A learned correction on top of the training-free velocity, for likelihoods it has never seen."""

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.embedding import Dense, DeepSet
from pfbr.likelihood import Likelihood
from pfbr.shapes import Key, PerParticle, Points, Scalar
from pfbr.velocities.base import Velocity
from pfbr.velocities.gaussian import Pace, View, affine_part, pace_of, view


class ResidualVelocity(Velocity):
    """v(w) = ū + ½ C w + (cᵀ W_a + s · W_m) a(w), in the frame of the current particles.

    The likelihood is seen only as a function on the particles, through its scores and values against learned
    features b of the set: c = mean_j b(w_j) u_jᵀ and s = mean_j b(w_j) (ℓ_j − mean ℓ). The correction is linear in
    them: no information, no motion, and twice the information, twice the velocity, as the exact velocity has it
    (for a given density it solves ∇·(q v) = −q (ℓ − mean ℓ), which is linear in ℓ). W_a = W_m = 0 at first, so that an
    untrained correction is none.

    a(w) has two hidden layers, and (c, s) only set the weights of the last one, so that the divergence is exact and
    costs one more product of the hidden layer's size.
    """

    summary: DeepSet
    features: Dense
    first: Array
    first_from_summary: Array
    second: Array
    second_from_summary: Array
    along_scores: Float[Array, "p h"]
    along_values: Float[Array, "p d h"]

    def __init__(self, key: Key, dim: int, *, width: int = 64, num_features: int = 32):
        keys = jax.random.split(key, 6)

        def weight(k, m, n):
            return jax.random.normal(k, (m, n)) / jnp.sqrt(m)

        self.summary = DeepSet(keys[0], dim, width, layers=2)
        self.features = Dense(keys[1], (dim + width, width, num_features))
        self.first = weight(keys[2], dim, width)
        self.first_from_summary = weight(keys[3], width + 1, width)
        self.second = weight(keys[4], width, width)
        self.second_from_summary = weight(keys[5], width + 1, width)
        self.along_scores = jnp.zeros((num_features, width))
        self.along_values = jnp.zeros((num_features, dim, width))

    def open(self, key: Key, support: Points, likelihood: Likelihood) -> Pace:
        return pace_of(view(support, likelihood))

    def __call__(
        self, t: Scalar, points: Points, support: Points, context: Pace, likelihood: Likelihood
    ) -> tuple[Points, PerParticle]:
        seen = view(support, likelihood)
        push, half_slope = affine_part(seen)
        w = seen.frame.whiten(points)
        out, summary = self._last_layer(seen)
        y1 = jnp.tanh(w @ self.first + summary @ self.first_from_summary)
        y2 = jnp.tanh(y1 @ self.second + summary @ self.second_from_summary)
        correction = y2 @ out.T
        trace = jnp.sum(((1 - y1**2) @ (self.second * (self.first.T @ out))) * (1 - y2**2), axis=-1)
        rate = context.rate(t)
        velocity = seen.frame.vectors(push + w @ half_slope + correction)
        return rate * velocity, rate * (jnp.trace(half_slope) + trace)

    def _last_layer(self, seen: View) -> tuple[Float[Array, "d h"], Float[Array, " s"]]:
        """Weights of the last layer, set by what the likelihood looks like on the set; and the set's own summary."""
        n = seen.points.shape[0]
        summary = self.summary(seen.points)
        spread = jnp.broadcast_to(summary, (n, summary.shape[0]))
        features = self.features(jnp.concatenate([seen.points, spread], axis=-1))
        scores = features.T @ seen.scores / n  # (p, d)
        values = features.T @ seen.values / n  # (p,)
        out = scores.T @ self.along_scores + jnp.einsum("p,pdh->dh", values, self.along_values)
        return out, jnp.append(summary, 1.0)
