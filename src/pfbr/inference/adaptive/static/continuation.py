"""The rows that were not kept, between the particles at which what they say is known, value and score.

In a frame ξ of the cloud their log likelihood is a quadratic, whose slopes are nearest to the known ones, plus what
that leaves, from tangents at the particles around a place:

    f(ξ) = Q(ξ) + worth · Σ_k w_k(ξ) [r_k + g_k · (ξ − ξ_k)],   w_k ∝ a kernel of |ξ − ξ_k|

The kernels are narrow along directions in which most is left. Particles that are left out say which width continues
them best from the others, how much of that is to be believed, and whether the frame bends like a funnel. What is still
left then says how far the result may be trusted. The prior is no part of it: it is known everywhere.
"""

import equinox as eqx
import jax
from jax import Array
from jax import numpy as jnp

from pfbr.flow.transport.known import ALONE, FARTHER, POWER, STEEP, left_of, root_of
from pfbr.flow.transport.network import WIDTHS
from pfbr.inference.adaptive.static.affine import far
from pfbr.inference.adaptive.static.funnel import Funnel, fit_funnel
from pfbr.particles.whitening import whitening_of

BEYOND = 2.0  # times as far as a normal cloud reaches: there the density falls, whatever a quadratic says
RULED_OUT = 0.5 * BEYOND**2  # times a square: nats below the likeliest particle, as many as a normal falls that far
MOST_ANCHORS = 512  # cost grows with their square


class Quadratic(eqx.Module):
    """Nowhere convex: the prior need not bound what is."""

    centre: Array  # (d,)
    slope: Array  # (d,) there
    precision: Array  # (d, d)

    def __call__(self, places: Array) -> Array:
        z = places - self.centre
        return z @ self.slope - 0.5 * jnp.sum((z @ self.precision) * z, axis=1)

    def slopes(self, places: Array) -> Array:
        return self.slope - (places - self.centre) @ self.precision


class Continuation(eqx.Module):
    frame: Funnel
    smooth: Quadratic
    anchors: Array  # (m, d) in ξ
    left: Array  # (m,) values that the quadratic leaves
    left_slopes: Array  # (m, d)
    root: Array  # (d, d) of the kernels' metric
    alive: Array  # (m,) bool: where the target is not zero
    width: Array
    worth: Array  # the share of what is continued that is believed
    errors: Array  # (m,) nats: of anchors left out, about their mean
    weights: Array  # (m,) of the anchors, of the past

    def log_likelihood(self, points: Array) -> Array:
        """Of the rows that are not kept, up to a constant."""
        places = self.frame.latent(points)
        length = jnp.sqrt(jnp.sum(self.frame.frame.whiten(points) ** 2, axis=1) + 1e-12)
        beyond = jnp.maximum(length - BEYOND * far(points.shape[1]), 0)
        return self.smooth(places) + self.worth * continued(places, self, self.width) - 0.5 * beyond**2

    def variance(self) -> Array:
        """Of the mean, in posterior variances: what weights off by such errors do to it, at first order."""
        u = self.frame.frame.whiten(self.frame.points(self.anchors))
        return jnp.mean(((self.weights * self.errors) @ u) ** 2)

    def misfit(self) -> Array:
        """Nats²."""
        return self.weights @ self.errors**2


def nearest_quadratic(places: Array, weights: Array, scores: Array) -> Quadratic:
    """In slopes, of which no steep one decides alone."""
    d = places.shape[1]
    lengths = jnp.sum(scores**2, axis=1)
    typical = weights @ jnp.sqrt(lengths) + 1e-30
    share = weights / (1 + lengths / (STEEP * typical**2))
    share = share / jnp.maximum(jnp.sum(share), 1e-30)
    centre, slope = share @ places, share @ scores
    off = places - centre
    spread = (share[:, None] * off).T @ off + 8 * d * jnp.finfo(places.dtype).eps * jnp.eye(d, dtype=places.dtype)
    bend = (share[:, None] * off).T @ (scores - slope)
    precision = -jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(spread), True), bend)
    precision = 0.5 * (precision + precision.T)
    fine = jnp.all(jnp.isfinite(precision)) & jnp.all(jnp.isfinite(slope))
    values, vectors = jnp.linalg.eigh(jnp.where(fine, precision, 0))
    precision = (vectors * jnp.maximum(values, 0)) @ vectors.T
    return Quadratic(jnp.where(fine, centre, 0), jnp.where(fine, slope, 0), precision)


def continued(places: Array, known: Continuation, width: Array, itself: Array | None = None) -> Array:
    """What the quadratic leaves; neither much higher nor much lower than at any anchor, since beyond the last one a
    tangent leads anywhere. `itself` (m, m) bool: anchors that are not asked."""
    x, anchors = places @ known.root, known.anchors @ known.root
    squares = jnp.maximum(jnp.sum(x**2, 1)[:, None] + jnp.sum(anchors**2, 1) - 2 * x @ anchors.T, 0)
    asked = known.alive if itself is None else known.alive & ~itself
    near = jnp.where(asked, (1 + squares / (2 * POWER * width**2)) ** -POWER, 0)
    tangents = known.left + places @ known.left_slopes.T - jnp.sum(known.anchors * known.left_slopes, axis=1)
    said = jnp.sum(near * tangents, axis=1) / (jnp.sum(near, axis=1) + ALONE)
    return jnp.clip(said, jnp.min(known.left) - FARTHER, jnp.max(known.left) + FARTHER)


def fit_continuation(log_prior, values: Array, scores: Array, points: Array, log_weights: Array) -> Continuation:
    """`values`, `scores`: of prior and rows at the points; `log_prior` of one point."""
    step = max(1, len(points) // MOST_ANCHORS)
    points, values, scores = points[::step], values[::step], scores[::step]
    prior, prior_scores = jax.vmap(jax.value_and_grad(log_prior))(points)
    rows, row_scores = values - prior, scores - prior_scores
    # a particle that is ruled out tells nothing of the others: what it leaves may be as large as numbers get
    likely = values > jnp.max(jnp.where(jnp.isfinite(values), values, -jnp.inf)) - RULED_OUT * far(points.shape[1]) ** 2
    alive = likely & jnp.isfinite(rows) & jnp.all(jnp.isfinite(scores) & jnp.isfinite(row_scores), axis=1)
    scores, row_scores = (jnp.where(alive[:, None], a, 0) for a in (scores, row_scores))
    weights = jax.nn.softmax(jnp.where(alive, log_weights[::step], -jnp.inf))
    bent = fit_funnel(points, scores, whitening_of(points, weights))
    frames = jax.tree.map(lambda a, b: jnp.stack([a, b]), bent, bent.straight())
    fits = jax.lax.map(lambda frame: _fit_in(frame, points, rows, row_scores, weights, alive), frames)
    best = _least(jax.vmap(Continuation.misfit)(fits))
    return jax.tree.map(lambda leaf: leaf[best], fits)


def _fit_in(frame: Funnel, points, values, scores, weights, alive) -> Continuation:
    anchors = frame.latent(points)
    slopes = frame.slopes(anchors, scores)
    smooth = nearest_quadratic(anchors, weights, slopes)
    left = jnp.where(alive, values - smooth(anchors), jnp.nan)
    left, slopes, metric, _ = left_of(left, slopes - smooth.slopes(anchors), weights)
    one = jnp.ones((), points.dtype)
    known = Continuation(frame, smooth, anchors, left, slopes, root_of(metric), alive, one, one, left, weights)
    itself = jnp.eye(len(anchors), dtype=bool)

    def left_out(width):
        said = jnp.where(alive, continued(anchors, known, width, itself), 0)
        said = said - weights @ said
        # where the rest is mere noise, neighbours tell nothing of it, and nothing of them is believed
        worth = jnp.clip((weights @ (said * left)) / (weights @ said**2 + 1e-9), 0, 1)
        off = jnp.where(alive, worth * said - left, 0)
        return off - weights @ off, worth

    widths = jnp.asarray(WIDTHS, points.dtype)
    errors, worth = jax.lax.map(left_out, widths)
    best = _least(errors**2 @ weights)
    return eqx.tree_at(lambda c: (c.width, c.worth, c.errors), known, (widths[best], worth[best], errors[best]))


def _least(misfits: Array) -> Array:
    return jnp.argmin(jnp.where(jnp.isfinite(misfits), misfits, jnp.inf))
