"""One observation as a map: the particles along the two directions in which it is least like a quadratic are rearranged
exactly, and the others follow the Gaussian posterior.

In the frame of the cloud let y be the coordinates in the two directions and z the others. z goes where a Gaussian
posterior takes it; then, for each particle with its own z, y₂ | z and y₁ | y₂, z go where their distribution functions
say (Knothe and Rosenblatt): from the density before the observation to that density times the likelihood. Each
coordinate moves given those before it only, so that the Jacobian is triangular, and its determinant the product of the
slopes.

The likelihood is asked on one grid in y, with its slopes along z. The density before is known at the particles and
continued along the lines (`known.py`); how, says the network, which is all that is learned. If the density is Gaussian
and the likelihood a quadratic, or any function of y, nothing is left to learn and the map is exact.
"""

from functools import partial

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.flow.transport.gaussian import Outlook, bounded, outlook_of
from pfbr.flow.transport.known import (
    Anchors,
    Continued,
    Known,
    Places,
    Rest,
    anchors,
    continued_at,
    left_out_of,
    log_density,
    places,
    rest_of,
)
from pfbr.flow.transport.network import Network
from pfbr.flow.transport.rearrangement import cell_of, line, rearranged
from pfbr.particles.particles import ess_share
from pfbr.particles.whitening import whitening_of
from pfbr.typing import Matrix, PerParticle, Points

DIRECTIONS = 2
FAR = 4.5  # standard deviations that lines reach
NODES = 15  # along a line
INFORMED = 0.05  # what an observation says as a quadratic, against what it says otherwise: which directions are chosen
TOGETHER = 256  # particles whose grids are in memory at the same time
IMPOSSIBLE = -1e30
RULED_OUT = 1e3  # nats below the likeliest node


class Transported(eqx.Module):
    """`scores`: about those of the log density after, at the new points; None where nobody asked."""

    points: Points
    log_det: PerParticle
    scores: Points | None = None


class Grid(eqx.Module):
    """What is asked of the observation: log likelihood at the nodes of a grid in y, and its slopes along z there."""

    before: list[Float[Array, " g"]]  # nodes of each line
    after: list[Float[Array, " g"]]
    values: Float[Array, " gg"]
    slopes: Float[Array, "gg k"]
    rest_mean: Float[Array, " k"]
    rest_root: Float[Array, "k k"]


class Transport(eqx.Module):
    """The weights of the one network, and how they are used.

    `weights` are those under which the points stand for the density before the observation, which is known at them.
    """

    network: Network

    def __call__(
        self, points: Points, weights: PerParticle, before: Known, values_and_scores, *, with_scores: bool = False
    ) -> Transported:
        """`values_and_scores(points)` of the observation's log likelihood."""
        frame = whitening_of(points, weights)
        w = frame.whiten(points)

        def seen(w):
            values, scores = values_and_scores(frame.restore(w))
            return values, frame.covectors(scores)

        outlook = outlook_of(w, weights, seen)
        r = min(DIRECTIONS, w.shape[1])
        slopes = frame.covectors(before.scores)
        rest = rest_of(w, weights, Known(before.values, slopes))
        informed = _informed(outlook)
        basis = _basis(outlook.left + INFORMED * informed, outlook, r)
        known = anchors(rest, w, basis, r)
        left_out = left_out_of(known)
        how = self.network(jnp.concatenate([_told(w, weights, outlook, rest), jnp.tanh(left_out.errors)]), left_out)
        # no information, the same nodes, and no motion
        reach = 1 + (how.reach - 1) * jnp.tanh(4 * jnp.sqrt(jnp.sum(informed**2) + 1e-12))
        grid = _grid(outlook, basis, r, reach, seen)
        at = places(w, basis, r)
        moved, log_det = _rearranged(rest, known, how, grid, basis, at)
        there = moved @ basis
        if not with_scores:
            return Transported(points + frame.vectors(there - w), log_det)
        # What the map believes the density to be where the points are now: the slopes of what is carried along exactly
        # have the noise of every cell of every line in them, and more with each observation. Nothing learns through
        # them: where no neighbour is near their derivatives are infinite.
        believed = partial(_believed, *jax.lax.stop_gradient((rest, known, how)), basis, at, seen)

        def weighed(there, log_det):
            log_density, scores = believed(jax.lax.stop_gradient(there))
            return ess_share(log_density - before.values + jax.lax.stop_gradient(log_det)), scores

        share, scores = weighed(there, log_det)
        by_gaussian, by_gaussian_det = w @ outlook.root + outlook.shift, jnp.linalg.slogdet(outlook.root)[1]
        otherwise, other_scores = weighed(by_gaussian, by_gaussian_det)
        better = share >= otherwise
        there = jnp.where(better, there, by_gaussian)
        log_det, scores = jnp.where(better, log_det, by_gaussian_det), jnp.where(better, scores, other_scores)
        return Transported(points + frame.vectors(there - w), log_det, scores @ frame.inverse_scale)


def _believed(
    rest: Rest, known: Anchors, how: Continued, basis: Matrix, at: Places, values_and_scores, w: Points
) -> tuple[PerParticle, Points]:
    """The log density after the observation at points anywhere, and its slopes."""
    turned, r = w @ basis.T, at.y.shape[1]
    value, slopes = continued_at(rest, known, how, basis, Places(turned[:, :r], turned[:, r:], at.itself))
    gained, scores = bounded(*values_and_scores(w))
    return value + gained, slopes @ basis + scores


def _informed(outlook: Outlook) -> Matrix:
    """In the frame of the posterior: how much the observation narrows and shifts."""
    root, eye = outlook.root, jnp.eye(len(outlook.shift), dtype=outlook.shift.dtype)
    shift = root @ outlook.shift
    return eye - root @ root.T + jnp.outer(shift, shift) / (1 + shift @ shift)


def _basis(matrix: Matrix, outlook: Outlook, r: int) -> Matrix:
    """Rows of length one, orthogonal to each other: the first r see all that is to be rearranged."""
    found = jnp.linalg.eigh(0.5 * (matrix + matrix.T))[1][:, ::-1][:, :r]
    seen = jnp.linalg.solve(outlook.root, found)
    seen = jax.lax.stop_gradient(seen / jnp.linalg.norm(seen, axis=0))
    return jnp.linalg.qr(seen, mode="complete")[0].T


def _told(w, weights, outlook: Outlook, rest: Rest) -> Float[Array, " i"]:
    """Numbers of the whole cloud, each between −1 and 1."""
    n, d = w.shape
    largest = jnp.linalg.norm(outlook.left)
    heavy = weights @ jnp.sum(w**2, axis=1) ** 2 / (d * (d + 2)) - 1
    return jnp.stack(
        [
            jnp.full((), 1 / d, w.dtype),
            jnp.full((), jnp.log(n / 256) / 4, w.dtype),
            jnp.tanh(largest),
            jnp.tanh(jnp.trace(outlook.left) - largest),
            jnp.tanh(rest.steepness / d**0.5),
            jnp.trace(rest.metric) / d,
            jnp.tanh(heavy),
            jnp.tanh(jnp.trace(_informed(outlook)) / d),
            jnp.tanh(jnp.sqrt(outlook.shift @ outlook.shift + 1e-12) / 4),
        ]
    )


def _ticks(dtype) -> Float[Array, " g"]:
    """Closer to each other in the middle."""
    even = jnp.linspace(-1, 1, NODES, dtype=dtype)
    return FAR * (0.7 * even + 0.3 * even**3)


def _grid(outlook: Outlook, basis: Matrix, r: int, reach, values_and_scores) -> Grid:
    covariance = basis @ outlook.root.T @ outlook.root @ basis.T
    mean = basis @ outlook.shift
    spread = jnp.sqrt(jnp.diagonal(covariance))
    ticks = _ticks(mean.dtype)
    after = [mean[i] + reach * spread[i] * ticks for i in range(r)]
    y = _nodes(after)
    w = jnp.concatenate([y, jnp.broadcast_to(mean[r:], (len(y), len(mean) - r))], axis=1) @ basis
    # a node that is all but ruled out moves nothing; its derivatives, which may be infinite, must not reach the rest
    told = values_and_scores(jax.lax.stop_gradient(w))[0]
    counts = jnp.isfinite(told) & (told > jnp.max(jnp.where(jnp.isfinite(told), told, -jnp.inf)) - RULED_OUT)
    values, scores = values_and_scores(jnp.where(counts[:, None], w, jax.lax.stop_gradient(w)))
    slopes = bounded(values, scores)[1] @ basis[r:].T
    root = covariance[r:, r:]
    if len(root):
        found, vectors = jnp.linalg.eigh(root)
        root = (vectors * jnp.sqrt(jnp.maximum(found, 1e-12))) @ vectors.T
    return Grid([ticks] * r, after, jnp.where(jnp.isfinite(values), values, IMPOSSIBLE), slopes, mean[r:], root)


def _nodes(lines) -> Float[Array, "gg r"]:
    return jnp.stack(jnp.meshgrid(*lines, indexing="ij"), axis=-1).reshape(-1, len(lines))


def _rearranged(rest: Rest, known: Anchors, how: Continued, grid: Grid, basis: Matrix, at: Places):
    """All particles, some at a time: where they are after, in the coordinates of the basis; log determinants."""
    n = len(at.y)
    some = lambda at: _rearrange(rest, known, how, grid, basis, at)
    if n <= TOGETHER:
        return some(at)
    parts = -(-n // TOGETHER)
    fold = lambda a: jnp.pad(a, [(0, parts * TOGETHER - n)] + [(0, 0)] * (a.ndim - 1), mode="edge").reshape(
        parts, TOGETHER, *a.shape[1:]
    )
    moved, log_det = jax.lax.map(some, jax.tree.map(fold, at))
    return moved.reshape(-1, moved.shape[-1])[:n], log_det.reshape(-1)[:n]


def _rearrange(rest: Rest, known: Anchors, how: Continued, grid: Grid, basis: Matrix, at: Places):
    n, r = at.y.shape
    z = at.z @ grid.rest_root + grid.rest_mean
    log_det = jnp.broadcast_to(jnp.linalg.slogdet(grid.rest_root)[1], (n,)) if z.shape[1] else jnp.zeros(n, z.dtype)
    density = lambda lines, z: log_density(rest, known, how, basis, _nodes(lines), z, at.itself)
    start = density(grid.before, at.z)
    end = density(grid.after, z) + grid.values + (z - grid.rest_mean) @ grid.slopes.T
    if r == 1:
        y, gained = rearranged(line(grid.before[0], start), line(grid.after[0], end), at.y[:, 0])
        return jnp.concatenate([y[:, None], z], axis=1), log_det + gained
    square = lambda density, nodes: density.reshape(n, len(nodes[0]), len(nodes[1]))
    start, end = square(start, grid.before), square(end, grid.after)
    # the second coordinate, the first one summed out
    second, gained = rearranged(_summed(grid.before, start), _summed(grid.after, end), at.y[:, 1])
    first, more = rearranged(
        line(grid.before[0], _between(grid.before[1], start, at.y[:, 1])),
        line(grid.after[0], _between(grid.after[1], end, second)),
        at.y[:, 0],
    )
    return jnp.concatenate([first[:, None], second[:, None], z], axis=1), log_det + gained + more


def _summed(nodes, density: Float[Array, "n g h"]):
    ends = jnp.concatenate([nodes[0][:1], nodes[0], nodes[0][-1:]])
    widths = 0.5 * (ends[2:] - ends[:-2])
    return line(nodes[1], jax.nn.logsumexp(density + jnp.log(widths)[:, None], axis=1))


def _between(nodes, values: Float[Array, "n g h"], places: PerParticle) -> Float[Array, "n g"]:
    """Along the last axis, on straight lines between the nodes."""
    cell = cell_of(nodes, places)
    part = jnp.clip((places - nodes[cell]) / jnp.maximum(nodes[cell + 1] - nodes[cell], 1e-9), 0, 1)
    at = jnp.arange(len(nodes))
    share = jnp.where(at == cell[:, None], 1 - part[:, None], jnp.where(at == cell[:, None] + 1, part[:, None], 0))
    return jnp.einsum("ngh,nh->ng", values, share)
