"""The map of one observation where its answer is known, and what must not change it."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr.flow.transport.known import Known, anchors, log_density, places, rest_of
from pfbr.flow.transport.network import WIDTHS, LeftOut, untrained
from pfbr.flow.transport.transport import Transport, _rearrange
from pfbr.inference.adaptive.general import shipped
from pfbr.particles.particles import ess_share
from pfbr.particles.qmc import sobol_normal
from tests.flow.transport import cases

N = 256
FRESH = Transport(untrained(jax.random.key(0)))
EQUAL = jnp.full(N, 1 / N)


def moved(case, transport=None, points=None, weights=EQUAL):
    points = case.draws(jax.random.key(1), N) if points is None else points
    known = Known(*jax.vmap(jax.value_and_grad(case.log_before))(points))
    return points, (transport or shipped())(points, weights, known, jax.vmap(jax.value_and_grad(case.log_likelihood)))


def log_weights(case, points, after):
    before = jax.vmap(case.log_before)
    return before(after.points) + jax.vmap(case.log_likelihood)(after.points) - before(points) + after.log_det


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_a_quadratic_under_a_normal_is_bayes_rule(dim):
    """Moments and weights, however sharp the observation."""
    case = cases.Quadratic(dim, 0.01)
    points, after = moved(case, points=sobol_normal(jax.random.key(3), N, dim))
    mean, covariance = case.posterior()
    np.testing.assert_allclose(after.points.mean(0), mean, atol=0.02)
    np.testing.assert_allclose(np.cov(after.points.T).reshape(dim, dim), covariance, atol=0.05)
    assert ess_share(log_weights(case, points, after)) > 0.97


@pytest.mark.parametrize("case", cases.CURVED, ids=lambda case: type(case).__name__)
def test_curved_likelihoods_leave_even_weights_and_the_evidence(case):
    """In ten dimensions as in two; the mean weight is the evidence, which four million draws of the prior tell."""
    points, after = moved(case)
    weights = log_weights(case, points, after)
    assert ess_share(weights) > 0.85
    np.testing.assert_allclose(jax.nn.logsumexp(weights) - np.log(N), case.log_evidence, atol=0.1)


def test_what_says_nothing_moves_nothing():
    """But for what straight lines between other nodes make of the same density."""
    case = cases.Ring(3)
    points = case.draws(jax.random.key(1), N)
    known = Known(*jax.vmap(jax.value_and_grad(case.log_before))(points))
    after = shipped()(points, EQUAL, known, lambda x: (jnp.zeros(len(x)), jnp.zeros_like(x)))
    np.testing.assert_allclose(after.points, points, atol=0.02)
    np.testing.assert_allclose(after.log_det, 0, atol=0.05)


def test_other_units_change_nothing_else():
    """A coordinate in units a million times smaller."""
    case = cases.Ring(3)
    points, plain = moved(case)
    unit = jnp.asarray([1.0, 2.0**20, 2.0**-20])
    scaled = cases.Scaled(case, unit)
    _, other = moved(scaled, points=points * unit)
    np.testing.assert_allclose(other.points / unit, plain.points, atol=1e-4)
    np.testing.assert_allclose(other.log_det, plain.log_det, atol=1e-3)


def test_the_log_determinant_is_that_of_the_map():
    """The map of one particle, given what is said of the cloud: its Jacobian, entry by entry."""
    case = cases.Ring(4)
    w = jax.random.normal(jax.random.key(5), (N, 4))
    known = Known(*jax.vmap(jax.value_and_grad(case.log_before))(w))
    rest, basis = rest_of(w, EQUAL, known), jnp.linalg.qr(jax.random.normal(jax.random.key(6), (4, 4)))[0]
    some = anchors(rest, w, basis, 2)
    how = FRESH.network(jnp.zeros(9 + len(WIDTHS)), LeftOut(jnp.ones(len(WIDTHS)), jnp.ones(len(WIDTHS))))
    ticks = jnp.linspace(-4, 4, 15)
    values = jax.vmap(case.log_likelihood)(
        jnp.stack(jnp.meshgrid(ticks, ticks, indexing="ij"), -1).reshape(-1, 2) @ basis[:2]
    )
    grid = cases.grid(ticks, values, jnp.diag(jnp.asarray([0.5, 2.0])), jnp.asarray([0.3, -1.0]))
    whole = lambda w: _rearrange(rest, some, how, grid, basis, places(w, basis, 2))
    jacobians = jax.jacfwd(lambda shift: whole(w + shift)[0])(jnp.zeros(4))  # every particle by its own map
    found = jnp.linalg.slogdet(jacobians)[1]
    np.testing.assert_allclose(np.sort(jnp.abs(found - whole(w)[1]))[: int(0.95 * N)], 0, atol=0.02)


def test_a_density_is_continued_from_the_particles():
    """A mixture of two normals in three dimensions, at draws that were left out."""
    case = cases.TwoLumps(3)
    w = case.draws(jax.random.key(1), N)
    known = Known(*jax.vmap(jax.value_and_grad(case.log_before))(w))
    rest, basis = rest_of(w, EQUAL, known), jnp.eye(3)
    some, at = anchors(rest, w, basis, 2), places(w, basis, 2)
    left_out = LeftOut(jnp.asarray([0.1, 0.1, 0.2, 0.5, 1.0]), jnp.ones(len(WIDTHS)))
    how = FRESH.network(jnp.zeros(9 + len(WIDTHS)), left_out)
    nodes = at.y[:8]
    told = log_density(rest, some, how, basis, nodes, at.z[:8], at.itself[:8])[jnp.arange(8), jnp.arange(8)]
    off = told - known.values[:8]
    assert jnp.max(jnp.abs(off - jnp.median(off))) < 0.5


def test_many_particles_are_moved_as_few():
    """Some at a time, so that the memory is bounded; a number that does not divide evenly too."""
    case = cases.Ring(3)
    points = case.draws(jax.random.key(1), 600)
    weights = jnp.full(600, 1 / 600)
    points, after = moved(case, points=points, weights=weights)
    assert after.points.shape == (600, 3)
    assert ess_share(log_weights(case, points, after)) > 0.85
