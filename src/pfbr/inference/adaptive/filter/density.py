"""The log density of a weighted cloud, from the cloud alone: kernels as wide as the cloud itself asks for.

In the whitened frame each kernel is drawn to the mean by √(1 − h²) and has width h (West 1993), so that mean and
covariance stay those of the cloud, from one Gaussian (h = 1) to separate kernels. The cloud chooses: the widest h whose
likelihood of the particles, each given all others, is within a standard error of the best. No transition density is
asked for, so that deterministic, singular and intractable dynamics are fine.
"""

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array

from pfbr.inference.adaptive.filter.cloud import Cloud
from pfbr.particles.particles import normalise as normalised
from pfbr.particles.resampling import systematic
from pfbr.particles.whitening import Whitening, whitening_of

WIDTHS = (1.0, 0.7, 0.5, 0.35, 0.25, 0.15, 0.08)
MAX_CENTRES = 512  # kernels: a density of thousands of them costs more than it tells
MAX_JUDGES = 128  # particles that choose the width: a standard error of a tenth of a nat is enough


class Judges(eqx.Module):
    """A few particles, each scored by a density that leaves out its family."""

    points: Array  # (j, d)
    share: Array  # (j,) weights
    others: Array  # (j, m) bool: which centres are of another family
    scores: Array  # (j,) log densities


class CloudDensity(eqx.Module):
    whitening: Whitening
    centres: Array  # (m, d), whitened
    log_weights: Array  # (m,), normalised
    width: Array
    origin: Array  # (m,) int: which particle each centre is
    defensive: Array | float  # mass and width of the Gaussian that gives the density its tails
    breadth: Array | float

    def __call__(self, points: Array) -> Array:
        return self.relative(points) - _constant(self.whitening)

    def relative(self, points: Array) -> Array:
        """Up to a constant, which holds the units of the unknowns: without it another unit changes no bit."""
        return jnp.logaddexp(*self._parts(points))

    def beyond(self, points: Array) -> Array:
        """The share of the density at each point that is not the particles' own but the wide Gaussian's."""
        kernels, wide = self._parts(points)
        return jax.nn.sigmoid(wide - kernels)

    def varied(self, width: Array, keep: Array) -> "CloudDensity":
        """The same density with kernels of another width, or of some centres alone (up to a constant)."""
        log_weights = jnp.where(keep, self.log_weights, -jnp.inf)
        return eqx.tree_at(lambda s: (s.width, s.log_weights), self, (width * self.width, log_weights))

    def _parts(self, points: Array) -> tuple[Array, Array]:
        z = self.whitening.whiten(points)
        kernels = jax.nn.logsumexp(_log_kernels(z, self.centres, self.width) + self.log_weights, axis=1)
        # one wide Gaussian with a little of the mass: where an observation lies beyond the kernels, particles can
        # follow
        wide = -0.5 * jnp.sum(z**2, axis=1) / self.breadth**2 - z.shape[1] * jnp.log(self.breadth)
        return jnp.log1p(-self.defensive) + kernels, jnp.log(self.defensive) + wide


def _constant(whitening: Whitening) -> Array:
    return 0.5 * whitening.mean.shape[0] * jnp.log(2 * jnp.pi) + whitening.log_det


def _log_kernels(z: Array, centres: Array, width: Array) -> Array:
    """Log kernels for every pair, without the constant that no width changes."""
    shrunk = jnp.sqrt(1 - width**2) * centres
    squared = jnp.sum(z**2, 1)[:, None] + jnp.sum(shrunk**2, 1)[None] - 2 * z @ shrunk.T
    return -0.5 * squared / width**2 - z.shape[1] * jnp.log(width)


def cloud_density(key: Array, cloud: Cloud, settings) -> CloudDensity:
    return judged_density(key, cloud, settings, cloud.log_weights)[0]


def judged_density(key: Array, cloud: Cloud, settings, log_chances: Array) -> tuple[CloudDensity, Judges]:
    """The density, and how likely the particles are by it out of sample.

    Of many particles some become centres, each with a chance that `log_chances` gives, and with a weight that makes up
    for it. `cloud.family`: particles resampled from one ancestor share a number. A width is judged by leaving out the
    whole family: copies of a particle are no evidence that the density is narrow."""
    points, log_weights, family = cloud.points, normalised(cloud.log_weights), cloud.family
    n = points.shape[0]
    whitening = whitening_of(points, jnp.exp(log_weights), shrink=False)
    centres, centre_weights, centre_family = whitening.whiten(points), log_weights, family
    origin = jnp.arange(n)
    if n > MAX_CENTRES:
        origin = systematic(key, log_chances, MAX_CENTRES)
        centres, centre_family = centres[origin], family[origin]
        centre_weights = normalised(log_weights[origin] - log_chances[origin])
        # the moments of all, not of some
        centres = whitening_of(centres, jnp.exp(centre_weights), shrink=False).whiten(centres)

    stride = max(1, centres.shape[0] // MAX_JUDGES)
    judges, judge_family = centres[::stride], centre_family[::stride]
    share = jnp.exp(normalised(centre_weights[::stride]))
    others = judge_family[:, None] != centre_family[None]
    left = jax.nn.logsumexp(jnp.where(others, centre_weights, -jnp.inf), axis=1)
    # all pairs once; every width is a combination of the same three terms
    inner = judges @ centres.T
    own, theirs = jnp.sum(judges**2, 1)[:, None], jnp.sum(centres**2, 1)[None]

    def left_out(width):
        keep = 1 - width**2
        squared = own + keep * theirs - 2 * jnp.sqrt(keep) * inner
        kernels = -0.5 * squared / width**2 - points.shape[1] * jnp.log(width) + centre_weights
        each = jax.nn.logsumexp(jnp.where(others, kernels, -jnp.inf), axis=1) - left
        # one Gaussian has no kernels of its own to leave out
        each = jnp.where(width > 0.99, -0.5 * own[:, 0], each)
        return jnp.where(jnp.isfinite(each), each, -1e4)

    widths = jnp.asarray(WIDTHS, points.dtype)
    scores = jax.lax.map(left_out, widths)
    best = jnp.argmax(scores @ share)
    behind = scores[best] - scores
    loss = behind @ share
    error = jnp.sqrt((behind - loss[:, None]) ** 2 @ share**2)
    width = jnp.max(jnp.where(loss <= settings.slack * error, widths, 0.0))
    density = CloudDensity(whitening, centres, centre_weights, width, origin, settings.defensive, settings.breadth)
    chosen = scores[jnp.argmax(widths == width)] - _constant(whitening)
    return density, Judges(points[origin[::stride]], share, others, chosen)
