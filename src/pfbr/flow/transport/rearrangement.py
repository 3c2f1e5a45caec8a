"""The monotone map that takes one density on a line to another, for many lines at once.

A density is given by its logarithm at nodes, and is a straight line between them: mass and its inverse then have closed
forms, and so has the slope of the map, which is the quotient of the two densities. Beyond the last node a density falls
exponentially. Masses are taken from the nearer end, so that the far tail keeps its digits.
"""

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.typing import PerParticle

STEEPEST = 60.0  # nats below the highest node: beyond, a density counts as zero
SLOWEST = 0.5  # of the last nodes' distance: a tail falls by no less than this many nats over it
CLOSEST = 1e-6  # distance of two nodes: nearer ones count as so far apart
FLAT = 1e-3  # nats over a cell, below which the exponential is written as a series


class Line(eqx.Module):
    """A density for each of n lines, at g nodes that they share."""

    nodes: Float[Array, " g"]
    log_density: Float[Array, "n g"]
    slopes: Float[Array, "n c"]  # of the log density, in each cell
    falls: Float[Array, "n 2"]  # of the log density away from the first and the last node, both positive
    below: Float[Array, "n g"]  # share of the mass on the left of each node
    above: Float[Array, "n g"]  # and on its right
    log_mass: PerParticle


def line(nodes: Float[Array, " g"], log_density: Float[Array, "n g"]) -> Line:
    g = len(nodes)
    highest = jax.lax.stop_gradient(jnp.max(log_density, axis=1, keepdims=True))
    f = jnp.maximum(log_density - highest, -STEEPEST)
    widths = jnp.maximum(jnp.diff(nodes), CLOSEST)
    slopes = jnp.diff(f, axis=1) / widths
    cells = jnp.exp(f[:, :-1]) * widths * _growth(slopes * widths)
    first = jnp.maximum(slopes[:, 0], SLOWEST / widths[0])
    last = jnp.maximum(-slopes[:, -1], SLOWEST / widths[-1])
    left, right = jnp.exp(f[:, 0]) / first, jnp.exp(f[:, -1]) / last
    masses = jnp.concatenate([left[:, None], cells, right[:, None]], axis=1)
    total = jnp.sum(masses, axis=1)
    shares = masses / total[:, None]
    return Line(
        nodes,
        f - jnp.log(total)[:, None],
        slopes,
        jnp.stack([first, last], axis=1),
        shares @ np.triu(np.ones((g + 1, g), np.float32)),  # running sums, as products: several times faster
        shares @ np.tril(np.ones((g + 1, g), np.float32), -1),
        jnp.log(total) + highest[:, 0],
    )


def rearranged(start: Line, end: Line, places: PerParticle) -> tuple[PerParticle, PerParticle]:
    """Where each point goes, and the logarithm of the map's slope there."""
    below, above, density = _masses(start, places)
    there, density_there = _quantiles(end, below, above)
    return there, density - density_there


def _growth(x):
    """(eˣ − 1) / x."""
    small = jnp.abs(x) < FLAT
    return jnp.where(small, 1 + 0.5 * x, jnp.expm1(x) / jnp.where(small, 1.0, x))


def _take(array: Float[Array, "n g"], index) -> PerParticle:
    """One of each row: by a sum, since looking up is slow."""
    return jnp.sum(jnp.where(index[:, None] == jnp.arange(array.shape[1]), array, 0), axis=1)


def cell_of(nodes: Float[Array, " g"], places: PerParticle):
    """Between which two nodes each place is; the first or the last cell for those beyond."""
    return jnp.clip(jnp.sum(nodes <= places[:, None], axis=1) - 1, 0, len(nodes) - 2)


def _masses(of: Line, places: PerParticle) -> tuple[PerParticle, PerParticle, PerParticle]:
    """Shares of the mass on both sides of each place, and the log density there."""
    nodes, first, last = of.nodes, of.falls[:, 0], of.falls[:, 1]
    cell = cell_of(nodes, places)
    left, right = places < nodes[0], places > nodes[-1]
    slope, at_node = _take(of.slopes, cell), _take(of.log_density, cell)
    inside = jnp.clip(places, nodes[cell], nodes[cell + 1])
    done, rest = inside - nodes[cell], nodes[cell + 1] - inside
    density = at_node + slope * done
    density = jnp.where(left, of.log_density[:, 0] + first * jnp.minimum(places - nodes[0], 0), density)
    density = jnp.where(right, of.log_density[:, -1] - last * jnp.maximum(places - nodes[-1], 0), density)
    within = jnp.exp(at_node) * done * _growth(slope * done)
    onwards = jnp.exp(jnp.where(left | right, at_node, density)) * rest * _growth(slope * rest)
    in_left, in_right = jnp.exp(density) / first, jnp.exp(density) / last
    below = jnp.where(left, in_left, jnp.where(right, 1 - in_right, _take(of.below, cell) + within))
    above = jnp.where(right, in_right, jnp.where(left, 1 - in_left, _take(of.above, cell + 1) + onwards))
    return below, above, density


def _quantiles(of: Line, below: PerParticle, above: PerParticle) -> tuple[PerParticle, PerParticle]:
    """The places with so much mass on their two sides, and the log densities there."""
    nodes, first, last = of.nodes, of.falls[:, 0], of.falls[:, 1]
    cells = len(nodes) - 1
    from_left = below <= above
    index = jnp.where(
        from_left,
        jnp.sum(of.below <= below[:, None], axis=1) - 1,
        cells - jnp.sum(of.above <= above[:, None], axis=1),
    )
    left, right = index < 0, index >= cells
    cell = jnp.clip(index, 0, cells - 1)
    slope, width = _take(of.slopes, cell), jnp.diff(nodes)[cell]
    at_node, at_next = _take(of.log_density, cell), _take(of.log_density, cell + 1)
    gained = jnp.maximum(below - _take(of.below, cell), 0) * jnp.exp(-at_node)
    lost = jnp.maximum(above - _take(of.above, cell + 1), 0) * jnp.exp(-at_next)
    done = jnp.where(from_left, _length(slope, gained), width - _length(-slope, lost))
    done = jnp.clip(done, 0, width)
    tiny = jnp.finfo(nodes.dtype).tiny
    before = (jnp.log(jnp.maximum(below, tiny) * first) - of.log_density[:, 0]) / first
    beyond = -(jnp.log(jnp.maximum(above, tiny) * last) - of.log_density[:, -1]) / last
    before, beyond = jnp.where(left, jnp.minimum(before, 0), 0), jnp.where(right, jnp.maximum(beyond, 0), 0)
    place = jnp.where(left, nodes[0] + before, jnp.where(right, nodes[-1] + beyond, nodes[cell] + done))
    density = jnp.where(
        left,
        of.log_density[:, 0] + first * before,
        jnp.where(right, of.log_density[:, -1] - last * beyond, at_node + slope * done),
    )
    return place, density


def _length(slope, mass):
    """How far a density that begins at one and grows like exp(slope · x) has to be followed for this mass."""
    x = jnp.maximum(slope * mass, -1 + 1e-6)
    small = jnp.abs(x) < FLAT
    return mass * jnp.where(small, 1 - 0.5 * x, jnp.log1p(x) / jnp.where(small, 1.0, x))
