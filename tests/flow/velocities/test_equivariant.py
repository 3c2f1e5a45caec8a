"""One velocity for every dimension: it turns with the cloud, its determinant is that of its Jacobian, no
information moves nothing, and without training it is the affine flow."""

import equinox as eqx
import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr.flow.kicks import kicked_steps
from pfbr.flow.likelihood import Likelihood
from pfbr.flow.velocities import AffineVelocity, EquivariantVelocity
from pfbr.models import GaussianMean
from pfbr.models.base import Model
from tests.weights import filled

N = 40


class Bent(Model):
    """o = log(1 + ‖x − o‖²) + x₁ x_last: curved, and in any dimension."""

    dim: int = eqx.field(static=True, default=3)

    def sample_prior(self, key):
        return jax.random.normal(key, (self.dim,))

    def log_prior(self, x):
        return -0.5 * x @ x

    def log_likelihood(self, x, observation):
        return -jnp.log1p(jnp.sum((x - observation) ** 2)) + 0.3 * jnp.tanh(x[0] * x[-1])


STEP = 1e-5  # of differences


def trained():
    """Weights as training might leave them."""
    return filled(0, lambda: EquivariantVelocity(jax.random.key(0)), scale=0.3)


def a_cloud(d, seed=0):
    rng = np.random.default_rng(seed)
    return jnp.asarray(rng.normal(size=(N, d)) + 0.3 * rng.normal(size=(N, 1)) ** 2)


def asked(velocity, cloud, log_likelihood, weights=None, points=None):
    """One step over the whole likelihood: where the points end, and the log determinant at each."""
    both = jax.vmap(jax.value_and_grad(log_likelihood))
    weights = jnp.full(len(cloud), 1 / len(cloud), cloud.dtype) if weights is None else weights
    times = jnp.array([0.0, 1.0], cloud.dtype)
    if points is None:
        return kicked_steps(velocity, cloud, weights, both, times)
    return kicked_steps(velocity, points, weights, both, times, cloud)


@pytest.mark.parametrize("d", [1, 4])
def test_the_log_determinant_is_that_of_the_map(d, x64):
    velocity, cloud, points = trained(), a_cloud(d), a_cloud(d, seed=1)[:7]
    weights = jax.nn.softmax(jnp.asarray(np.random.default_rng(2).normal(size=N)))
    model = Bent(d)
    log_likelihood = lambda x: model.log_likelihood(x, jnp.ones(d))

    @jax.jit
    def compared(points):
        log_det = asked(velocity, cloud, log_likelihood, weights, points)[1]
        at = lambda x: asked(velocity, cloud, log_likelihood, weights, x)[0]
        return log_det, jnp.stack([(at(points + h) - at(points - h)) / (2 * STEP) for h in STEP * jnp.eye(d)])

    # by differences: the compiler's cheap setting makes NaN of some derivatives along one direction
    log_det, columns = compared(points)
    expected = np.log(np.abs(np.linalg.det(np.moveaxis(columns, 0, -1))))
    np.testing.assert_allclose(log_det, expected, atol=1e-7)
    affine = asked(EquivariantVelocity(jax.random.key(0)), cloud, log_likelihood, weights, points)[1]
    assert np.max(np.abs(log_det - affine)) > 1e-2  # the kick has a determinant of its own


def test_the_velocity_is_that_of_short_steps(x64):
    """And its divergence: what other solvers of the flow are given."""
    velocity, cloud = trained(), a_cloud(3)
    likelihood = Likelihood(Bent(3), jnp.ones(3))
    context = velocity.prepare(jax.random.key(0), cloud, likelihood)
    value, divergence = jax.jit(lambda c: velocity(jnp.zeros(()), c, c, context, likelihood))(cloud)
    both = likelihood.values_and_scores
    short = 1e-6
    times = jnp.array([0.0, short]) * context.rate(jnp.zeros(()))
    there, log_det = jax.jit(lambda c: kicked_steps(velocity, c, jnp.full(N, 1 / N), both, times))(cloud)
    np.testing.assert_allclose((there - cloud) / short, value, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(log_det / short, divergence, rtol=1e-4, atol=1e-4)


def test_it_turns_with_the_cloud_and_knows_no_units(x64):
    """Of a cloud and a likelihood in other coordinates, x ↦ R x + b with any invertible R, it is the same velocity."""
    velocity, cloud, d = trained(), a_cloud(3), 3
    rng = np.random.default_rng(5)
    matrix, shift = jnp.asarray(rng.normal(size=(d, d)) * [[1.0], [1e3], [1e-3]]), jnp.asarray(rng.normal(size=d))
    model = Bent(d)
    plain = lambda x: model.log_likelihood(x, jnp.ones(d))
    turned = lambda y: plain(jnp.linalg.solve(matrix, y - shift))
    value, divergence = jax.jit(lambda c: asked(velocity, c, plain))(cloud)
    other, other_divergence = jax.jit(lambda c: asked(velocity, c, turned))(cloud @ matrix.T + shift)
    np.testing.assert_allclose(other - shift, value @ matrix.T, rtol=1e-6, atol=1e-6 * np.max(np.abs(matrix)))
    np.testing.assert_allclose(other_divergence, divergence, rtol=1e-6, atol=1e-6)


def test_weights_count_as_copies_do(x64):
    """Half of the cloud with weight two is the cloud in which it lies twice; a weight of zero is no particle."""
    velocity, cloud = trained(), a_cloud(2)
    log_likelihood = lambda x: Bent(2).log_likelihood(x, jnp.ones(2))
    points = a_cloud(2, seed=3)[:5]
    weights = jnp.where(jnp.arange(N) < N // 2, 2.0, 1.0)
    weights = jnp.where(jnp.arange(N) >= N - 4, 0.0, weights)
    copied = jnp.concatenate([cloud[: N // 2], cloud[: N - 4]])
    both = jax.jit(
        lambda a, w, b, v: (
            asked(velocity, a, log_likelihood, w, points),
            asked(velocity, b, log_likelihood, v, points),
        )
    )
    one, other = both(cloud, weights / jnp.sum(weights), copied, None)
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def test_without_training_it_is_the_affine_flow_and_without_information_it_rests():
    cloud = a_cloud(3).astype(jnp.float32)
    likelihood = Likelihood(GaussianMean(3), jnp.ones(3))
    for velocity in (AffineVelocity(), EquivariantVelocity(jax.random.key(1))):
        context = velocity.prepare(jax.random.key(0), cloud, likelihood)
        told = jax.jit(
            lambda c, velocity=velocity, context=context: velocity(jnp.asarray(0.3), c, c, context, likelihood)
        )(cloud)
        if isinstance(velocity, AffineVelocity):
            expected = told
    for a, b in zip(told, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    value, divergence = jax.jit(lambda c: asked(trained(), c, lambda x: 0.0 * x[0] - 7.0))(cloud)
    assert np.all(value == cloud)
    assert np.all(divergence == 0)


def test_particles_that_are_ruled_out_spoil_nothing():
    cloud = a_cloud(2).astype(jnp.float32)
    cut = lambda x: jnp.where(x[0] > 1.0, -jnp.inf, jnp.log(jnp.maximum(1.0 - x[0], 1e-9)))
    value, divergence = jax.jit(lambda c: asked(trained(), c, cut))(cloud)
    assert np.all(np.isfinite(value))
    assert np.all(np.isfinite(divergence))
    assert np.any(cloud[:, 0] > 1.0)
