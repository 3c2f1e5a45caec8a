"""Maps between densities on a line whose answers are known."""

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.flow.transport.rearrangement import line, rearranged

NODES = jnp.linspace(-5, 5, 41)
PLACES = jnp.asarray([-7.0, -3.2, -0.4, 0.0, 0.31, 2.9, 6.5])


def lines(density, nodes=NODES):
    return line(nodes, jnp.broadcast_to(density(nodes), (len(PLACES), len(nodes))))


def test_a_density_stays_where_it_is():
    """Anywhere, the far tails included, whatever its height."""
    some = lines(lambda x: jnp.cos(2 * x) - 0.3 * x**2 + 40)
    there, slope = rearranged(some, some, PLACES)
    np.testing.assert_allclose(there, PLACES, atol=2e-4)
    np.testing.assert_allclose(slope, 0, atol=2e-4)


def test_a_normal_goes_to_another_by_a_straight_line():
    """Nodes that correspond make it exact, in the tails too."""
    start = lines(lambda x: -0.5 * x**2)
    end = lines(lambda x: -0.5 * ((x - 3) / 0.01) ** 2, 3 + 0.01 * NODES)
    there, slope = rearranged(start, end, PLACES)
    np.testing.assert_allclose(there, 3 + 0.01 * PLACES, atol=1e-5)
    np.testing.assert_allclose(slope, np.log(0.01), atol=1e-3)


def test_mass_crosses_to_a_mode_of_its_own():
    """A third of the mass is far away: a third of the places go there."""
    start = lines(lambda x: -0.5 * x**2)
    two = lambda x: jnp.logaddexp(jnp.log(2.0) - 50 * (x + 3) ** 2, -50 * (x - 3) ** 2)
    end = line(jnp.linspace(-5, 5, 401), jnp.broadcast_to(two(jnp.linspace(-5, 5, 401)), (999, 401)))
    places = jax.scipy.stats.norm.ppf((jnp.arange(999) + 0.5) / 999)
    wide = line(NODES, jnp.broadcast_to(-0.5 * NODES**2, (999, len(NODES))))
    there, _ = rearranged(wide, end, places)
    assert start.nodes.shape == NODES.shape
    np.testing.assert_allclose(jnp.mean(there > 0), 1 / 3, atol=0.005)


def test_the_slope_is_that_of_the_map():
    start = lines(lambda x: jnp.sin(x) - 0.1 * x**2)
    end = lines(lambda x: -jnp.abs(x - 1) + 0.5 * jnp.cos(3 * x))
    places = PLACES + 0.013  # between nodes
    slope = jax.jvp(lambda p: rearranged(start, end, p)[0], (places,), (jnp.ones_like(places),))[1]
    np.testing.assert_allclose(jnp.log(slope), rearranged(start, end, places)[1], atol=5e-3)
