"""A learned correction on top of the training-free velocity, for likelihoods it has never seen."""

import jax
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.flow.likelihood import Likelihood
from pfbr.flow.velocities.affine import TimeSchedule, View, affine_part, time_schedule_of, view
from pfbr.flow.velocities.base import Velocity
from pfbr.typing import Key, PerParticle, Points, Scalar, Support

FEW_DIMENSIONS = 3


class ResidualVelocity(Velocity):
    """v(w) = ū + ½ C w + (cᵀ W_a + s · W_m) a(w) + Σ_h a_h(w) B_h u(w), in the frame of the current particles.

    The likelihood is seen only as a function on the particles, through its scores and values against learned
    features b of the set: c = mean_j b(w_j) u_jᵀ and s = mean_j b(w_j) (ℓ_j − mean ℓ). The correction is linear in
    them: no information, no motion, and twice the information, twice the velocity, as the exact velocity has it
    (for a given density it solves ∇·(q v) = −q (ℓ − mean ℓ), which is linear in ℓ). W_a = W_m = 0 at first, so that an
    untrained correction is none.

    One hidden layer y(w) serves three purposes: its mean over the set is the summary z of the set's shape, and with z
    it gives the features b and the second hidden layer a. (c, s) only set the weights of the last layer, so that the
    divergence is exact and costs one more product of the hidden layer's size.

    The last term (`local`) is the particle's own score u(w), turned and stretched as the set's shape demands. Where
    the posterior is a thin curve, it alone knows where the curve runs at each point. Its divergence needs the
    curvature of ℓ, d more derivatives, so that it is there in few dimensions only.
    """

    first: Float[Array, "d h"]
    first_bias: Float[Array, " h"]
    summarise: Float[Array, "h h"]
    second: Float[Array, "h h"]
    second_from_summary: Float[Array, "h1 h"]
    features: Float[Array, "h p"]
    features_from_summary: Float[Array, "h1 p"]
    along_scores: Float[Array, "p h"]
    along_values: Float[Array, "p d h"]
    along_own: Float[Array, "h d d"] | None

    def __init__(self, key: Key, dim: int, *, width: int = 64, num_features: int = 32, local: bool | None = None):
        keys = jax.random.split(key, 7)

        def weight(k, m, n):
            return jax.random.normal(k, (m, n)) / jnp.sqrt(m)

        self.first = weight(keys[0], dim, width)
        self.first_bias = jax.random.uniform(keys[1], (width,), minval=-1.5, maxval=1.5)  # bends across the set
        self.summarise = weight(keys[2], width, width)
        self.second = weight(keys[3], width, width)
        self.second_from_summary = weight(keys[4], width + 1, width)
        self.features = weight(keys[5], width, num_features)
        self.features_from_summary = weight(keys[6], width + 1, num_features)
        self.along_scores = jnp.zeros((num_features, width))
        self.along_values = jnp.zeros((num_features, dim, width))
        local = dim <= FEW_DIMENSIONS if local is None else local
        self.along_own = jnp.zeros((width, dim, dim)) if local else None

    def prepare(self, key: Key, support: Support, likelihood: Likelihood) -> TimeSchedule:
        return time_schedule_of(view(support, likelihood))

    def __call__(
        self, t: Scalar, points: Points, support: Support, context: TimeSchedule, likelihood: Likelihood
    ) -> tuple[Points, PerParticle]:
        seen = view(support, likelihood)
        mean_score, half_curvature = affine_part(seen)
        out, summary = self._last_layer(seen)
        w = seen.points if points is support else seen.frame.whiten(points)
        y1 = self._hidden(w)
        y2 = jnp.tanh(y1 @ self.second + summary @ self.second_from_summary)
        slope1, slope2 = 1 - y1**2, 1 - y2**2
        correction = y2 @ out
        trace = jnp.sum((slope1 @ (self.second * (out @ self.first).T)) * slope2, axis=-1)
        if self.along_own is not None:
            scores, curvatures = _own(seen, points, likelihood)
            local = jnp.einsum("nh,hij->nij", y2, self.along_own)
            correction += jnp.einsum("nij,nj->ni", local, scores)
            trace += jnp.einsum("nij,nji->n", local, curvatures)
            for i in range(w.shape[1]):  # Σ_i ∂a/∂w_i · (B u)_i; few dimensions, so that a plain loop is best
                gradient = ((slope1 * self.first[i]) @ self.second) * slope2
                trace += jnp.sum(gradient * (scores @ self.along_own[:, i, :].T), axis=-1)
        rate = context.rate(t)
        velocity = seen.frame.vectors(mean_score + w @ half_curvature + correction)
        return rate * velocity, rate * (jnp.trace(half_curvature) + trace)

    def _hidden(self, w: Points) -> Float[Array, "n h"]:
        return jnp.tanh(w @ self.first + self.first_bias)

    def _last_layer(self, seen: View) -> tuple[Float[Array, "h d"], Float[Array, " h1"]]:
        """Weights of the last layer, set by what the likelihood looks like on the set; and the set's summary."""
        n = seen.points.shape[0]
        hidden = self._hidden(seen.points)
        summary = jnp.append(jnp.tanh(jnp.mean(hidden, axis=0) @ self.summarise), 1.0)
        features = jnp.tanh(hidden @ self.features + summary @ self.features_from_summary)
        scores = features.T @ seen.scores / n  # (p, d)
        values = features.T @ seen.values / n  # (p,)
        out = self.along_scores.T @ scores + jnp.einsum("p,pdh->hd", values, self.along_values)
        return out, summary


def _own(seen: View, points: Points, likelihood: Likelihood) -> tuple[Points, Float[Array, "n d d"]]:
    """Score and curvature of the likelihood at each point, in the set's frame; zero where they do not exist."""

    def in_frame(x):
        gradient = jax.grad(likelihood.model.log_likelihood)
        hessian = jax.jacfwd(gradient)(x, likelihood.observation)
        scale = seen.frame.scale
        return scale.T @ gradient(x, likelihood.observation), scale.T @ hessian @ scale

    scores, curvatures = jax.vmap(in_frame)(points)
    fine = jnp.all(jnp.isfinite(scores), axis=-1) & jnp.all(jnp.isfinite(curvatures), axis=(-2, -1))
    return jnp.where(fine[:, None], scores, 0.0), jnp.where(fine[:, None, None], curvatures, 0.0)
