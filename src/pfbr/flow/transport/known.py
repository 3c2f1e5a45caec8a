"""The density before an observation along lines through a cloud, from its values and scores at the particles.

It is a Gaussian, whose scores are nearest to those of the particles, times what that leaves. At each particle the rest
is known, with its slope; between them it is continued from the neighbours, by how near they are in the directions of
the lines, in the others, and how much the rest varies along each. No density is estimated from where particles lie.
"""

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp
from jaxtyping import Array, Float, Int

from pfbr.flow.transport.network import WIDTHS, Continued, LeftOut
from pfbr.typing import Matrix, PerParticle, Point, Points, Scalar

ANCHORS = 128  # particles that are asked as neighbours, so that the cost grows no faster than the cloud
STEEP = 9.0  # times d: mean squares of scores beyond which they count less and less
ASIDE = 3.0  # standard deviations by which the middle of a density may lie away from that of its cloud, about
MOST = 5.0  # nats: an error beyond is as bad
FARTHER = 0.5  # nats beyond what is left at any anchor that is still believed
LONELY = 2.0  # standard deviations, of the logarithm of how many neighbours an anchor has
TAILS = (1.0, 2.0, 4.0, 8.0, 16.0, 64.0, 1e4)  # times d: squared lengths at which a density leaves the Gaussian
ALONE = 1e-15  # of a neighbour: where there are fewer, nothing is continued; its square is still a number in float32
POWER = 8  # of the kernels' tails: near nodes decide, and far ones never vanish to nothing


class Known(eqx.Module):
    """Of a density before an observation, in the frame of the cloud: log values and scores at the particles."""

    values: PerParticle
    scores: Points


class Rest(eqx.Module):
    """log density = −½ height · tail · log(1 + u / tail) + rest, u = (w − mean)ᵀ precision (w − mean): nearly Gaussian
    where the tail is long, else like Student's t. The rest with its slopes at all particles."""

    mean: Point
    precision: Matrix
    tail: Scalar
    height: Scalar
    values: PerParticle
    slopes: Points
    metric: Matrix  # of the slopes' mean squares: (d, d), its largest eigenvalue one
    steepness: Scalar  # root mean square of the slopes


def rest_of(w: Points, weights: PerParticle, known: Known) -> Rest:
    d = w.shape[1]
    eye = jnp.eye(d, dtype=w.dtype)
    # scores that are straight lines are found with any shares; of others no steep one decides alone
    lengths = jnp.sum(known.scores**2, axis=1)
    share = jnp.where(jnp.isfinite(lengths), weights / (1 + lengths / (STEEP * d)), 0)
    share = share / jnp.maximum(jnp.sum(share), 1e-30)
    scores = jnp.where(share[:, None] > 0, known.scores, 0)
    centre, mean_score = share @ w, share @ scores
    off = w - centre
    spread = (share[:, None] * off).T @ off + 8 * d * jnp.finfo(w.dtype).eps * eye
    slope = (share[:, None] * off).T @ (scores - mean_score)
    precision = -jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(spread), True), slope)
    precision = 0.5 * (precision + precision.T)
    fine = jnp.all(jnp.isfinite(precision)) & jnp.all(jnp.isfinite(mean_score))
    values, vectors = jnp.linalg.eigh(jnp.where(fine, precision, eye))
    values = jnp.clip(values, 0.05, None)  # where the density curves upwards the cloud's own width must do
    precision = (vectors * values) @ vectors.T
    shift = vectors @ ((vectors.T @ jnp.where(fine, mean_score, 0)) / values)
    mean = centre + shift / jnp.sqrt(1 + shift @ shift / ASIDE**2)
    z = w - mean
    pulled = z @ precision
    u = jnp.sum(pulled * z, axis=1)
    tail, height = _tail(u, pulled, known.scores, weights, d)
    left = known.values + 0.5 * height * tail * jnp.log1p(u / tail)
    slopes = known.scores + height * pulled / (1 + u / tail)[:, None]
    return Rest(mean, precision, tail, height, *left_of(left, slopes, weights))


def left_of(left: PerParticle, slopes: Points, weights: PerParticle):
    """What a smooth part leaves at the particles, about its mean, with its slopes, their metric and steepness."""
    alive = jnp.isfinite(left) & jnp.all(jnp.isfinite(slopes), axis=1)
    level = jnp.sum(jnp.where(alive, weights * left, 0)) / jnp.maximum(jnp.sum(jnp.where(alive, weights, 0)), 1e-9)
    left = jnp.where(alive, left - level, 0)
    slopes = jnp.where(alive[:, None], slopes, 0)
    # how much is left along each direction, no particle deciding alone
    length = jnp.sqrt(jnp.sum(slopes**2, axis=1, keepdims=True) + 1e-12)
    typical = 3 * (weights @ jnp.sqrt(length)) ** 2
    shorter = slopes / jnp.sqrt(1 + (length / typical) ** 2)
    found, vectors = jnp.linalg.eigh((weights[:, None] * shorter).T @ shorter + 1e-12 * jnp.eye(slopes.shape[1]))
    relative = jnp.sqrt(jnp.maximum(found / found[-1], 1e-6))
    metric = (vectors * relative) @ vectors.T
    return left, slopes, jax.lax.stop_gradient(metric), jnp.sqrt(weights @ length[:, 0] ** 2)


def _tail(u, pulled, scores, weights, d):
    """The tail whose scores are nearest to those of the particles, and how high they are."""
    scores = jnp.where(jnp.all(jnp.isfinite(scores), axis=1, keepdims=True), scores, 0)
    weights = weights / (1 + u / (4 * d))  # no far particle decides alone

    def fit(tail):
        like = -pulled / (1 + u / tail)[:, None]
        height = (weights @ jnp.sum(like * scores, 1)) / (weights @ jnp.sum(like**2, 1) + 1e-12)
        return weights @ jnp.sum((scores - height * like) ** 2, 1), height

    tails = d * jnp.asarray(TAILS, u.dtype)
    lost, heights = jax.vmap(fit)(tails)
    best = jnp.argmin(lost)
    return tails[best], jnp.clip(heights[best], 0.2, 5.0)


class Anchors(eqx.Module):
    """The particles that are asked, in the coordinates of the lines (r of them) and the others."""

    y: Float[Array, "m r"]
    z: Float[Array, "m k"]
    values: Float[Array, " m"]
    y_slopes: Float[Array, "m r"]
    z_slopes: Float[Array, "m k"]
    y_root: Float[Array, "r r"]  # of the metric
    z_root: Float[Array, "k k"]


def chosen_of(n: int):
    """The numbers of the particles that are asked."""
    count = min(n, ANCHORS)
    return (np.arange(count) * n) // count


def anchors(rest: Rest, w: Points, basis: Matrix, r: int) -> Anchors:
    """`basis`: rows of an orthogonal matrix, the first r of them along the lines."""
    chosen = chosen_of(len(w))
    turned, slopes = w[chosen] @ basis.T, rest.slopes[chosen] @ basis.T
    metric = basis @ rest.metric @ basis.T
    return Anchors(
        turned[:, :r],
        turned[:, r:],
        rest.values[chosen],
        slopes[:, :r],
        slopes[:, r:],
        root_of(metric[:r, :r]),
        root_of(metric[r:, r:]),
    )


def root_of(matrix: Matrix) -> Matrix:
    if not matrix.shape[0]:
        return matrix
    values, vectors = jnp.linalg.eigh(matrix)
    return (vectors * jnp.sqrt(jnp.maximum(values, 1e-8))) @ vectors.T


def left_out_of(known: Anchors) -> LeftOut:
    """The rest at each anchor continued from the others, for every width of the kernels."""
    y, z = known.y @ known.y_root, known.z @ known.z_root
    y_apart, z_apart = _squares(y, y), _squares(z, z)
    others = ~jnp.eye(len(y), dtype=bool)
    begin = known.values - jnp.sum(known.y_slopes * known.y, 1) - jnp.sum(known.z_slopes * known.z, 1)
    tangents = begin + known.y @ known.y_slopes.T + known.z @ known.z_slopes.T
    about = lambda x: MOST * jnp.tanh((x - jnp.median(x)) / MOST)
    truth = about(known.values)

    def judged(width):
        near = jnp.where(others, _kernel(y_apart / width**2) * _kernel(z_apart / width**2), 0)
        said = within(jnp.sum(near * tangents, axis=1) / (jnp.sum(near, axis=1) + ALONE), known)
        like = about(said)
        # where the rest is mere noise, neighbours tell nothing of it, and nothing of them is believed
        worth = jnp.clip(jnp.sum(like * truth) / (jnp.sum(like**2) + 1e-9), 0, 1)
        return jnp.mean(jnp.abs(about(said - known.values))), worth

    none = jnp.mean(jnp.abs(known.values - jnp.median(known.values)))
    errors, worth = jax.vmap(judged)(jnp.asarray(WIDTHS, known.y.dtype))
    return LeftOut(errors / (none + 1e-6), worth)


def _kernel(squares):
    return (1 + squares / (2 * POWER)) ** -POWER


def _squares(a, b):
    return jnp.maximum(jnp.sum(a**2, 1)[:, None] + jnp.sum(b**2, 1) - 2 * a @ b.T, 0)


class Places(eqx.Module):
    """Particles in the coordinates of the lines and the others, and which anchor each of them is itself, if any.

    A particle is not its own neighbour: what is said of its line must not depend on where on the line it lies, or the
    slope of the map along the line would not be the quotient of two densities.
    """

    y: Float[Array, "n r"]
    z: Float[Array, "n k"]
    itself: Int[Array, " n"]  # the number of that anchor; −1: none


def places(w: Points, basis: Matrix, r: int) -> Places:
    n = len(w)
    turned = w @ basis.T
    chosen = chosen_of(n)
    itself = jnp.full(n, -1).at[chosen].set(jnp.arange(len(chosen)))
    return Places(turned[:, :r], turned[:, r:], itself)


def log_density(
    rest: Rest, known: Anchors, how: Continued, basis: Matrix, nodes: Float[Array, "g r"], z: Array, itself: Array
) -> Float[Array, "n g"]:
    """At the nodes of all lines, with the other coordinates z of each."""
    r = nodes.shape[-1]
    precision, mean = basis @ rest.precision @ basis.T, rest.mean @ basis.T
    y, off = nodes - mean[:r], z - mean[r:]
    squares = jnp.sum((y @ precision[:r, :r]) * y, axis=1) + 2 * off @ precision[r:, :r] @ y.T
    squares = jnp.maximum(squares + jnp.sum((off @ precision[r:, r:]) * off, axis=1)[:, None], 0)
    smooth = -0.5 * rest.height * rest.tail * jnp.log1p(squares / rest.tail)

    # kernels in y and in z apart: products of n × m and m × g are all that a grid costs
    near_z = _kernel(_squares(z @ known.z_root, known.z @ known.z_root) / how.z_width**2)
    near_z = jnp.where(itself[:, None] == jnp.arange(near_z.shape[1]), 0, near_z)
    near_y = _kernel(_squares(nodes @ known.y_root, known.y @ known.y_root) / how.y_width**2).T
    begin = known.values - jnp.sum(known.y_slopes * known.y, 1) - how.tangent * jnp.sum(known.z_slopes * known.z, 1)
    continued = near_z @ ((begin[:, None] + known.y_slopes @ nodes.T) * near_y)
    continued = continued + (how.tangent * near_z * (z @ known.z_slopes.T)) @ near_y
    near = near_z @ near_y + ALONE
    return smooth + how.share * (within(continued / near, known) - falls(near, known, how))


def falls(near: Array, known: Anchors, how: Continued) -> Array:
    """Nats by which a density that is no Gaussian falls where hardly an anchor is near: a tangent knows of no other
    side of a ridge. Not before it is lonelier there than at nearly all anchors."""
    level, bent = loneliness(known, how)
    return bent * jnp.maximum(level - jnp.log(near), 0)


def loneliness(known: Anchors, how: Continued) -> tuple[Scalar, Scalar]:
    """The logarithm of the neighbours of a lonely anchor; and how much is left there of a Gaussian, 0 to 1."""
    y, z = known.y @ known.y_root, known.z @ known.z_root
    near = _kernel(_squares(y, y) / how.y_width**2) * _kernel(_squares(z, z) / how.z_width**2)
    others = jnp.log(jnp.sum(jnp.where(jnp.eye(len(y), dtype=bool), 0, near), axis=1) + ALONE)
    about = known.values - jnp.mean(known.values)
    return jnp.mean(others) - LONELY * jnp.std(others), jnp.tanh(jnp.mean(about**2))


def within(continued: Array, known: Anchors) -> Array:
    """Neither much higher nor much lower than at any anchor: beyond the last of them a tangent leads anywhere."""
    return jnp.clip(continued, jnp.min(known.values) - FARTHER, jnp.max(known.values) + FARTHER)


def continued_at(
    rest: Rest, known: Anchors, how: Continued, basis: Matrix, at: Places
) -> tuple[PerParticle, Float[Array, "n d"]]:
    """The continued log density at points anywhere, and its slopes in the coordinates of the basis."""
    precision, mean, r = basis @ rest.precision @ basis.T, rest.mean @ basis.T, at.y.shape[1]
    anchors = jnp.concatenate([known.y, known.z], axis=1)
    slopes = jnp.concatenate([known.y_slopes, how.tangent * known.z_slopes], axis=1)
    level, bent = loneliness(known, how)

    def value(x, itself):
        squares = jnp.maximum((x - mean) @ precision @ (x - mean), 0)
        smooth = -0.5 * rest.height * rest.tail * jnp.log1p(squares / rest.tail)
        off = x - anchors
        y_apart = jnp.sum((off[:, :r] @ known.y_root) ** 2, axis=1) / how.y_width**2
        z_apart = jnp.sum((off[:, r:] @ known.z_root) ** 2, axis=1) / how.z_width**2
        near = jnp.where(itself == jnp.arange(len(off)), 0, _kernel(y_apart) * _kernel(z_apart))
        tangents = known.values + jnp.sum(slopes * off, axis=1)
        total = jnp.sum(near) + ALONE
        fallen = bent * jnp.maximum(level - jnp.log(total), 0)
        return smooth + how.share * (within(near @ tangents / total, known) - fallen)

    return jax.vmap(jax.value_and_grad(value))(jnp.concatenate([at.y, at.z], axis=1), at.itself)
