"""Every way to the divergence gives the trace of the Jacobian."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr.errors import InputError
from pfbr.flow.divergence import by_forward_mode, by_hutchinson
from pfbr.flow.likelihood import Likelihood
from pfbr.flow.velocities import AffineVelocity, FokkerPlanckVelocity, GatedVelocity, ResidualVelocity
from pfbr.models import GaussianMixture, MiniBatch, observation_shape
from tests.weights import filled

SINGLE, BATCH = GaussianMixture(), MiniBatch(GaussianMixture(), 3)


def seen_by(model):
    """A set of particles, points to ask about, and a likelihood, in the precision of the moment."""
    rng = np.random.default_rng(0)
    support, points = jnp.asarray(rng.normal(size=(11, 2))), jnp.asarray(rng.normal(size=(11, 2)))
    return support, points, Likelihood(model, jnp.asarray(rng.normal(size=observation_shape(model))))


def told(key, velocity, support, points, likelihood):
    """Values and divergence as the velocity tells them."""
    context = velocity.prepare(key, support, likelihood)
    return velocity(jnp.asarray(0.3), points, support, context, likelihood)


@jax.jit
def compared(velocity, support, points, likelihood):
    """What the velocity tells, and the same by the full Jacobian at a fixed set."""
    value, divergence = told(jax.random.key(1), velocity, support, points, likelihood)
    context = velocity.prepare(jax.random.key(1), support, likelihood)

    def at(x):
        return velocity(jnp.asarray(0.3), jnp.broadcast_to(x, points.shape), support, context, likelihood)[0][0]

    return value, divergence, jax.vmap(at)(points), jnp.trace(jax.vmap(jax.jacfwd(at))(points), axis1=1, axis2=2)


def agree(velocity, model):
    value, divergence, expected_value, expected = jax.tree.map(np.asarray, compared(velocity, *seen_by(model)))
    np.testing.assert_allclose(value, expected_value, atol=1e-10)
    np.testing.assert_allclose(divergence, expected, rtol=1e-9, atol=1e-10)
    assert np.max(np.abs(expected)) > 1e-2  # something to find
    return value, divergence


@pytest.mark.parametrize(
    ("num_layers", "feed"),
    [(1, "raw"), (2, "raw"), (3, "raw"), (1, "mean"), (3, "mean"), (2, "ordered"), (3, "ordered")],
)
def test_structure_and_forward_mode_give_the_trace(num_layers, feed, x64):
    """`exact` is the structure where there is one; `forward` is asked for by name."""
    model = SINGLE if feed == "raw" else BATCH

    shape = observation_shape(model)

    def made(way):
        return filled(
            2,
            lambda: GatedVelocity(
                jax.random.key(0), 2, shape, width=6, num_layers=num_layers, feed=feed, divergence=way
            ),
        )

    support, points, likelihood = seen_by(model)
    value, divergence = agree(made("exact" if num_layers == 3 else "structure"), model)
    by_forward = jax.jit(told)(jax.random.key(1), made("forward"), support, points, likelihood)
    np.testing.assert_allclose(value, by_forward[0], atol=1e-10)
    np.testing.assert_allclose(divergence, by_forward[1], atol=1e-10)


@pytest.mark.parametrize(("num_layers", "feed"), [(4, "raw"), (2, "score")])
def test_what_has_no_structure_goes_by_forward_mode(num_layers, feed, x64):
    agree(
        filled(2, lambda: GatedVelocity(jax.random.key(0), 2, (1,), width=6, num_layers=num_layers, feed=feed)), SINGLE
    )
    with pytest.raises(InputError, match="forward"):
        GatedVelocity(jax.random.key(0), 2, (1,), num_layers=num_layers, feed=feed, divergence="structure")


@pytest.mark.parametrize("name", ["gaussian", "residual", "fokker-planck"])
def test_velocities_of_the_whole_set_tell_the_trace_at_a_fixed_set(name, x64):
    velocity = {
        "gaussian": AffineVelocity(),
        "residual": filled(3, lambda: ResidualVelocity(jax.random.key(0), 2, width=7, num_features=5)),
        "fokker-planck": FokkerPlanckVelocity(),
    }[name]
    _, divergence = agree(velocity, SINGLE)
    assert name == "gaussian" or np.ptp(divergence) > 1e-3  # the affine one is the same everywhere


def test_hutchinsons_estimate_is_unbiased():
    """The mean over 4000 probes, z = 5 at each of 11 particles: one false alarm in a hundred thousand."""
    exact, velocity = (
        filled(2, lambda way=way: GatedVelocity(jax.random.key(0), 2, (1,), width=6, divergence=way))
        for way in ("exact", "hutchinson")
    )
    support, points, likelihood = seen_by(SINGLE)
    expected = jax.jit(told)(jax.random.key(1), exact, support, points, likelihood)[1]
    estimates = jax.jit(jax.vmap(lambda key: told(key, velocity, support, points, likelihood)[1]))
    drawn = np.asarray(estimates(jax.random.split(jax.random.key(4), 4000)))
    spread = drawn.std(axis=0) / np.sqrt(4000)
    assert np.all(np.abs(drawn.mean(axis=0) - expected) < 5 * spread + 1e-5)
    assert np.all(spread > 0)


def test_a_linear_field_has_the_trace_of_its_matrix(x64):
    """tr A by forward mode; εᵀ A ε by Hutchinson, which for signs is tr A plus the off-diagonal part."""
    rng = np.random.default_rng(1)
    A, points, probe = rng.normal(size=(3, 3)), rng.normal(size=(5, 3)), rng.choice([-1.0, 1.0], size=(5, 3))
    value, trace = by_forward_mode(lambda x: x @ A.T, jnp.asarray(points))
    np.testing.assert_allclose(value, points @ A.T, rtol=1e-12)
    np.testing.assert_allclose(trace, np.trace(A), rtol=1e-12)
    estimate = by_hutchinson(lambda x: x @ A.T, jnp.asarray(points), jnp.asarray(probe))[1]
    np.testing.assert_allclose(estimate, np.einsum("ni,ij,nj->n", probe, A, probe), rtol=1e-10)
