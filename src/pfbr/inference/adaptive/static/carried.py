"""Where no row is kept: log target and score of the past, exact at every particle, continued between them.

Every row that is weighed adds its value and score at the particles, so that there both are known. A move asks for them
elsewhere. In the funnel frame ξ of the cloud the log target is a quadratic, its scores regressed on the particles, plus
what that leaves:

    f(ξ) = Q(ξ) + Σ_k w_k(ξ) [r_k + ½ (g_k + g(ξ)) · (ξ − ξ_k)],   w_k ∝ exp(−|ξ − ξ_k|² / 2h²),   g = Σ_k w_k g_k

with r_k, g_k the values and scores at particle k that Q leaves. For Gaussian targets Q is all; else the nearest
particles put it right. The width h is the one with which particles left out are best continued from the others; what
that still leaves says how far the result may be trusted.
"""

from typing import Any

import equinox as eqx
import jax
from jax import Array
from jax import numpy as jnp

from pfbr.inference.adaptive.static.affine import fit_gaussian
from pfbr.inference.adaptive.static.funnel import Funnel, fit_funnel
from pfbr.inference.adaptive.static.target import Evaluation, Target
from pfbr.particles.whitening import Whitening, whitening_of

WIDTHS = (0.03, 0.06, 0.12, 0.25, 0.5, 1.0)  # of kernels, in standard deviations times √d
LONGEST = 2.0  # widths along which a tangent is believed
REACH = 4.0  # usual distances to a neighbour: shorter, it cuts tails off, where neighbours are far, at every move
FITS, FARTHEST = 0.03, 4.0  # nats: what is continued with less error than this is believed farther, up to so often
FALL = 0.25  # of the reach: how fast the density falls beyond it
MOST_ANCHORS = 512  # cost grows with their square


class Carried(eqx.Module):
    """Of prior · past at the particles, up to a constant."""

    values: Array  # (n,)
    scores: Array  # (n, d)
    variance: Array  # of the mean, in posterior variances, by what continuing it has cost so far
    misfit: Array  # nats²: the same as a variance of the log density over the cloud

    def add(self, values: Array, scores: Array) -> "Carried":
        total = self.values + values
        level = jnp.max(jnp.where(jnp.isfinite(total), total, -jnp.inf))
        total = total - jnp.where(jnp.isfinite(level), level, 0)
        return Carried(total, self.scores + scores, self.variance, self.misfit)


class Continuation(eqx.Module):
    """The same function between the particles."""

    frame: Funnel
    anchors: Array  # (m, d) in ξ
    left: Array  # (m,) values that the quadratic leaves
    left_scores: Array  # (m, d)
    alive: Array  # (m,) bool: where the target is not zero
    mean: Array  # of the quadratic
    precision: Array
    width: Array
    reach: Array  # distance from the nearest anchor that is as usual
    errors: Array  # (m,) nats: of anchors left out, about their mean
    weights: Array  # (m,) of the anchors, of the past

    def log_density(self, points: Array) -> Array:
        """Up to the constant."""
        places = self.frame.latent(points)
        z = places - self.mean
        quadratic = -0.5 * jnp.sum((z @ self.precision) * z, axis=1)
        # a tangent that leads upwards would draw chains away for ever: beyond reach of all anchors the density falls
        beyond = jnp.maximum(nearest(places, self) / self.reach - 1, 0) / FALL
        return quadratic + continued(places, self, self.width) - 0.5 * beyond**2 - self.frame.log_det(places)

    def variance(self) -> Array:
        """Of the mean, in posterior variances: what weights off by such errors do to it, at first order."""
        u = self.frame.frame.whiten(self.frame.points(self.anchors))
        return jnp.mean(((self.weights * self.errors) @ u) ** 2)

    def misfit(self) -> Array:
        """Nats²."""
        return self.weights @ self.errors**2


def distances(places: Array, known: Continuation, left_out: Array | None) -> Array:
    """Squared, from the anchors that may be used: infinite from the others."""
    squared = jnp.sum(places**2, 1)[:, None] + jnp.sum(known.anchors**2, 1) - 2 * places @ known.anchors.T
    used = known.alive if left_out is None else known.alive & ~left_out
    return jnp.where(used, jnp.maximum(squared, 1e-12), jnp.inf)


def nearest(places: Array, known: Continuation, left_out: Array | None = None) -> Array:
    return jnp.sqrt(jnp.min(distances(places, known, left_out), axis=1))


def continued(places: Array, known: Continuation, width: Array, left_out: Array | None = None) -> Array:
    """What the quadratic leaves, from the anchors around a place; those `left_out` (m, k) are not used."""
    h = width * places.shape[1] ** 0.5
    squared = distances(places, known, left_out)
    nearness = jax.nn.softmax(-0.5 * squared / h**2, axis=1)
    # a step from anchor to place along the mean of the scores at both ends: exact for quadratics. That at the place is
    # the mean of those around it.
    along = places @ known.left_scores.T - jnp.sum(known.anchors * known.left_scores, axis=1)
    shorten = jnp.minimum(1, LONGEST * h * jax.lax.rsqrt(squared))
    from_anchors = jnp.sum(nearness * (known.left + 0.5 * shorten * along), axis=1)
    off = places - nearness @ known.anchors
    shorten = jnp.minimum(1, LONGEST * h * jax.lax.rsqrt(jnp.sum(off**2, axis=1) + 1e-12))
    return from_anchors + 0.5 * shorten * jnp.sum((nearness @ known.left_scores) * off, axis=1)


def fit_continuation(carried: Carried, points: Array, log_weights: Array) -> Continuation:
    n = points.shape[0]
    step = max(1, n // MOST_ANCHORS)
    points, values, scores = points[::step], carried.values[::step], carried.scores[::step]
    alive = jnp.isfinite(values) & jnp.all(jnp.isfinite(scores), axis=1)
    scores = jnp.where(alive[:, None], scores, 0)
    weights = jax.nn.softmax(jnp.where(alive, log_weights[::step], -jnp.inf))
    frame = fit_funnel(points, scores, whitening_of(points, weights))
    anchors = frame.latent(points)
    values = values + frame.log_det(anchors)
    scores = frame.scores(anchors, scores)
    fit = fit_gaussian(anchors, scores, weights)
    z = anchors - fit.mean
    left = values + 0.5 * jnp.sum((z @ fit.precision) * z, axis=1)
    left = jnp.where(alive, left - weights @ jnp.where(alive, left, 0), 0)
    left_scores = jnp.where(alive[:, None], scores + z @ fit.precision, 0)
    one = jnp.ones((), points.dtype)
    known = Continuation(frame, anchors, left, left_scores, alive, fit.mean, fit.precision, one, one, left, weights)

    itself = jnp.eye(len(left), dtype=bool)

    def left_out(width):
        off = jnp.where(alive, continued(anchors, known, width, itself) - left, 0)
        return off - weights @ off

    widths = jnp.asarray(WIDTHS, points.dtype)
    errors = jax.lax.map(left_out, widths)
    misfits = errors**2 @ weights
    best = jnp.argmin(jnp.where(jnp.isfinite(misfits), misfits, jnp.inf))
    usual = jnp.sqrt(weights @ jnp.where(alive, nearest(anchors, known, itself) ** 2, 0))
    fits = jnp.cbrt(FITS / (jnp.sqrt(misfits[best]) + 1e-9))
    reach = jnp.maximum(REACH * usual * jnp.clip(fits, 1.0, FARTHEST), 1e-6)
    return eqx.tree_at(lambda c: (c.width, c.reach, c.errors), known, (widths[best], reach, errors[best]))


def evaluate_carried(target: Target, continuation: Continuation, first: Array, points: Array, row: Any) -> Evaluation:
    """The past as it is carried, times the new row; before the first row the prior itself, which is known."""
    prior, prior_score = jax.vmap(jax.value_and_grad(target.log_prior))(points)
    past, pull_back = jax.vjp(continuation.log_density, points)
    (past_score,) = pull_back(jnp.ones_like(past))  # points do not depend on each other
    new, new_score = jax.vmap(jax.value_and_grad(lambda x: target.log_new(x, row)))(points)
    new = jnp.where(jnp.isnan(new), -jnp.inf, new)
    # outside of the prior's support stays outside, whatever the continuation says
    past = jnp.where(jnp.isfinite(prior), past, -jnp.inf)
    return Evaluation(jnp.where(first, prior, past), jnp.where(first, prior_score, past_score), new, new_score)


def no_past(points: Array) -> Carried:
    """Before the prior has been looked at."""
    zero = jnp.zeros((), points.dtype)
    return Carried(jnp.zeros_like(points[:, 0]), jnp.zeros_like(points), zero, zero)


def carried_prior(target: Target, points: Array) -> Carried:
    values, scores = jax.vmap(jax.value_and_grad(target.log_prior))(points)
    return no_past(points).add(values, scores)


def with_row(carried: Carried | None, target: Target, points: Array, row: Any) -> Carried | None:
    """The row added where it was weighed."""
    if carried is None:
        return None
    values, scores = jax.vmap(jax.value_and_grad(lambda x: target.log_new(x, row)))(points)
    return carried.add(jnp.where(jnp.isnan(values), -jnp.inf, values), scores)


def carried_law(law: Whitening, points: Array) -> Carried:
    """Of a normal law, in closed form."""
    white = law.whiten(points)
    zero = jnp.zeros((), points.dtype)
    return Carried(-0.5 * jnp.sum(white**2, axis=1), -white @ law.inverse_scale, zero, zero)
