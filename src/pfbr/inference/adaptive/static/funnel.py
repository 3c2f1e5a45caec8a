"""A frame that straightens funnels: one direction sets the width of all others, exponentially.

A noise scale that few rows hold, or the spread of groups, makes the posterior wide at one end and narrow at the other;
no linear frame fits both, and moves creep. Read off the cloud, in its white frame w:

    a = g · w                               the direction along which scores grow: regress log |score| on w
    d = (directions across a, turned to those in which scores are longest)
    ξ = (a, (d − m − γ a) / exp(α + β a))   each with a centre and a log width that are linear in a

In ξ a funnel is all but Gaussian, and every kind of move works as it should; the Jacobian keeps it exact. Where there
is no funnel β is 0 and this is a rotation.
"""

import equinox as eqx
import jax
from jax import Array
from jax import numpy as jnp

from pfbr.particles.whitening import Whitening

LEAST_SLOPE = 0.25  # of log widths per sd of a: three standard errors with 256 particles
LOG_ABS_NORMAL = -0.635  # mean of log |z|, z standard normal


class Funnel(eqx.Module):
    frame: Whitening
    turn: Array  # (d, d) orthogonal; the first column is g
    centre: Array  # (d − 1,) m
    lean: Array  # (d − 1,) γ
    log_width: Array  # (d − 1,) α
    slope: Array  # (d − 1,) β

    def latent(self, points: Array) -> Array:
        turned = self.frame.whiten(points) @ self.turn
        a, d = turned[:, :1], turned[:, 1:]
        return jnp.concatenate([a, (d - self.centre - self.lean * a) / self.widths(a)], axis=1)

    def points(self, latent: Array) -> Array:
        a, rest = latent[:, :1], latent[:, 1:]
        d = self.centre + self.lean * a + self.widths(a) * rest
        return self.frame.restore(jnp.concatenate([a, d], axis=1) @ self.turn.T)

    def straight(self) -> "Funnel":
        """The same without any bend: the white frame, turned."""
        zero = jnp.zeros_like(self.centre)
        return Funnel(self.frame, self.turn, zero, zero, zero, zero)

    def widths(self, a: Array) -> Array:
        return jnp.exp(jnp.clip(self.log_width + self.slope * a, -15.0, 15.0))

    def log_det(self, latent: Array) -> Array:
        return jnp.sum(jnp.log(self.widths(latent[:, :1])), axis=1)

    def scores(self, latent: Array, scores: Array) -> Array:
        """Scores of the target's density in ξ, the Jacobian's part included."""
        slopes = self.slopes(latent, scores)
        return slopes.at[:, 0].add(jnp.sum(self.slope))

    def slopes(self, latent: Array, scores: Array) -> Array:
        """Slopes along ξ of a function whose slopes are `scores`."""
        a, rest = latent[:, :1], latent[:, 1:]
        turned = self.frame.covectors(scores) @ self.turn
        width = self.widths(a)
        across = turned[:, 1:]
        along = turned[:, :1] + jnp.sum((self.lean + self.slope * width * rest) * across, axis=1, keepdims=True)
        return jnp.concatenate([along, width * across], axis=1)


def fit_funnel(points: Array, scores: Array, frame: Whitening) -> Funnel:
    """From an equally weighted cloud and its scores."""
    n, d = points.shape
    dtype = points.dtype
    w, s = frame.whiten(points), frame.covectors(scores)
    w_centred = w - jnp.mean(w, axis=0)

    # The direction along which the target tightens
    length = jnp.sqrt(jnp.sum(s**2, axis=1))
    typical = jnp.maximum(jnp.median(length), 1e-3)
    tight = jnp.log(jnp.maximum(length, 1e-3 * typical))
    g = w_centred.T @ (tight - jnp.mean(tight)) / n
    norm = jnp.sqrt(jnp.sum(g**2))
    g = jnp.where(norm > 1e-6, g / jnp.maximum(norm, 1e-6), jnp.eye(d, dtype=dtype)[0])

    # Across it, the directions of the longest scores (cut off, so that one particle in the neck does not decide alone)
    cut = s * jnp.minimum(1, 20 * typical / jnp.maximum(length, typical))[:, None]
    cut = cut - (cut @ g)[:, None] * g
    spread = cut.T @ cut / n
    spread = spread / jnp.maximum(jnp.trace(spread), jnp.finfo(dtype).tiny)
    _, turn = jnp.linalg.eigh(spread - g[:, None] * g)  # the lowest is g itself, by construction
    turned, signed = w @ turn, (s @ turn)[:, 1:]
    a, across, steep = turned[:, :1], turned[:, 1:], jnp.maximum(jnp.abs(signed), 1e-6)

    # Centres and log widths, each linear in a. Across a normal of width v the score is (centre − d) / v²: each particle
    # alone tells the centre, d + v² score, and the width, √(|d − centre| / |score|), without noise. The narrow end,
    # which must be hit, weighs most.
    fit = lambda y, weights: _lines(a, y, weights)

    def refine(_, c):
        log_width, slope, _, _ = c
        width = jnp.exp(jnp.clip(log_width + slope * a, -15.0, 15.0))
        z = width * signed
        weights = jnp.exp(-2 * jnp.clip(slope * (a - jnp.mean(a)), -8, 8))
        middle, lean = fit(across + width * jnp.clip(z, -3, 3), weights)
        left = jnp.maximum(jnp.abs(across - middle - lean * a), 1e-6 * width)
        log_width, slope = fit(0.5 * (jnp.log(left) - jnp.log(steep)), jnp.clip(z**2, 0.01, 4.0))
        return log_width, jnp.clip(slope, -4, 4), middle, lean

    log_width, slope = fit(LOG_ABS_NORMAL - jnp.log(steep), jnp.ones((n, d - 1), dtype))
    zero = jnp.zeros(d - 1, dtype)
    begin = (log_width, jnp.clip(slope, -4, 4), zero, zero)
    log_width, slope, middle, lean = jax.lax.fori_loop(0, 4, refine, begin)
    bent = (jnp.abs(slope) > LEAST_SLOPE) & jnp.isfinite(log_width) & jnp.isfinite(middle) & jnp.isfinite(lean)
    pick = lambda values: jnp.where(bent, values, 0)
    return Funnel(frame, turn, pick(middle), pick(lean), pick(log_width), pick(slope))


def _lines(x: Array, y: Array, weights: Array) -> tuple[Array, Array]:
    """Weighted lines through the columns of y: intercepts and slopes."""
    total = jnp.sum(weights, axis=0)
    x_mean, y_mean = jnp.sum(weights * x, axis=0) / total, jnp.sum(weights * y, axis=0) / total
    u = x - x_mean
    slope = jnp.sum(weights * u * (y - y_mean), axis=0) / jnp.maximum(jnp.sum(weights * u**2, axis=0), 1e-6 * total)
    return y_mean - slope * x_mean, slope
