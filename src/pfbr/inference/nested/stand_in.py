"""What stands in for rows that are gone: parameters as one Gaussian, and the state given them by regression.

At the moment at which the kept rows begin, the law of the parameters given all before is N(mean, scale scaleᵀ). With
w = scale⁻¹(θ − mean) the state has the mean a + B w, standard deviations exp(c + E w), and one correlation matrix.
"""

import equinox as eqx
from jax import numpy as jnp
from jaxtyping import Array, Bool, Float

from pfbr.particles.whitening import Whitening, whitening_of
from pfbr.typing import Matrix, PerParticle, Point, Points


class StandIn(eqx.Module):
    """Not `in_use` while no row is gone: the prior itself is then the start."""

    in_use: Bool[Array, ""]
    parameters: Whitening
    state: Point
    state_slope: Float[Array, "p d"]
    log_std: Point
    log_std_slope: Float[Array, "p d"]
    correlation_root: Matrix

    def log_density(self, thetas: Float[Array, "n p"]) -> PerParticle:
        """Of the parameters."""
        square = jnp.sum(self.parameters.whiten(thetas) ** 2, axis=-1)
        return -0.5 * square - 0.5 * thetas.shape[-1] * jnp.log(2 * jnp.pi) - self.parameters.log_det

    def states(self, theta: Float[Array, " p"], normals: Points) -> Points:
        """Draws of the state given the parameters, from standard normals."""
        w = self.parameters.whiten(theta)
        std = jnp.exp(self.log_std + w @ self.log_std_slope)
        return self.state + w @ self.state_slope + normals @ self.correlation_root.T * std


def no_stand_in(dim: int, size: int) -> StandIn:
    """For `size` parameters and a state of length `dim`, before any row is gone."""
    frame = Whitening(jnp.zeros(size), jnp.eye(size), jnp.eye(size))
    zeros, slopes = jnp.zeros(dim), jnp.zeros((size, dim))
    return StandIn(jnp.asarray(False), frame, zeros, slopes, zeros, slopes, jnp.eye(dim))


def fitted(
    thetas: Float[Array, "n p"], log_weights: PerParticle, states: Float[Array, "n m d"], inner: Float[Array, "n m"]
) -> StandIn:
    """Fitted to an outer cloud and its filters; `inner` are the log weights within each."""
    weights = jnp.exp(log_weights)
    frame = whitening_of(thetas, weights)
    w = frame.whiten(thetas)
    share = jnp.exp(inner)
    means = jnp.einsum("nm,nmd->nd", share, states)
    stds = jnp.sqrt(jnp.einsum("nm,nmd->nd", share, (states - means[:, None]) ** 2))
    state, slope = _regressed(w, weights, means)
    left = weights @ (means - state - w @ slope) ** 2  # what a straight line does not tell
    smallest = jnp.finfo(states.dtype).tiny ** 0.5
    log_std, log_std_slope = _regressed(w, weights, 0.5 * jnp.log(jnp.maximum(stds**2 + left, smallest)))
    residuals = (states - means[:, None]) / jnp.maximum(stds, smallest)[:, None]
    correlation = jnp.einsum("n,nm,nmi,nmj->ij", weights, share, residuals, residuals)
    root = jnp.linalg.cholesky(correlation + 1e-5 * jnp.eye(correlation.shape[0]))
    return StandIn(jnp.asarray(True), frame, state, slope, log_std, log_std_slope, root)


def _regressed(w: Float[Array, "n p"], weights: PerParticle, values: Points) -> tuple[Point, Float[Array, "p d"]]:
    """Value at w = 0 and slope of a weighted regression; w has mean zero and covariance one."""
    at_zero = weights @ values
    return at_zero, jnp.einsum("n,np,nd->pd", weights, w, values - at_zero)
