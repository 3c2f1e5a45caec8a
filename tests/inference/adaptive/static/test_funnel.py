"""The funnel's frame is a change of variables with its Jacobian; it straightens funnels, and turns what is none."""

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.inference.adaptive.static.funnel import Funnel, fit_funnel
from pfbr.particles.whitening import whitening_of

fitted = jax.jit(fit_funnel)


def neal(x):
    """x0 ~ N(0, 1) sets the width of two others: exp(1.5 x0)."""
    width = jnp.exp(1.5 * x[0])
    return -0.5 * x[0] ** 2 - 0.5 * jnp.sum((x[1:] / width) ** 2) - 2 * jnp.log(width)


def draws(key, n):
    z = jax.random.normal(key, (n, 3))
    return z.at[:, 1:].multiply(jnp.exp(1.5 * z[:, :1]))


def bent(points):
    frame = whitening_of(points)
    turn = jnp.linalg.qr(jax.random.normal(jax.random.key(5), (3, 3)))[0]
    two = lambda a, b: jnp.array([a, b])
    return Funnel(frame, turn, two(0.3, -0.2), two(0.1, 0.4), two(-0.5, 0.2), two(0.7, -0.3))


def test_there_and_back_with_the_jacobian_and_the_score_of_autodiff(x64):

    @jax.jit
    def all_of_it(points):
        funnel = bent(points)
        latent = funnel.latent(points)
        one = lambda xi: funnel.points(xi[None])[0]
        log_det = jax.vmap(lambda xi: jnp.linalg.slogdet(jax.jacfwd(one)(xi))[1])(latent)
        in_latent = jax.vmap(jax.grad(lambda xi: neal(one(xi)) + funnel.log_det(xi[None])[0]))(latent)
        scores = funnel.scores(latent, jax.vmap(jax.grad(neal))(points))
        return funnel.points(latent), funnel.log_det(latent) - log_det, scores, in_latent

    points = draws(jax.random.key(0), 6)
    back, constant, scores, in_latent = all_of_it(points)
    np.testing.assert_allclose(back, points, rtol=1e-9)
    np.testing.assert_allclose(jnp.diff(constant), 0.0, atol=1e-9)
    np.testing.assert_allclose(scores, in_latent, rtol=1e-8)


def test_a_funnel_is_straightened():
    """In the frame widths no longer depend on place: the log of a coordinate's size is free of the first."""
    points = draws(jax.random.key(1), 1024)
    funnel = fitted(points, jax.vmap(jax.grad(neal))(points), whitening_of(points))
    latent = np.asarray(funnel.latent(points))
    sizes = np.log(np.abs(latent[:, 1:]))
    before = np.corrcoef(np.log(np.abs(points[:, 1])), points[:, 0])[0, 1]
    assert before > 0.7
    assert max(abs(np.corrcoef(sizes[:, j], latent[:, 0])[0, 1]) for j in range(2)) < 0.15
    assert abs(np.corrcoef(latent[:, 0], points[:, 0])[0, 1]) > 0.97


def test_a_gaussian_is_left_straight():
    points = jax.random.normal(jax.random.key(2), (256, 3)) * jnp.array([1.0, 1e3, 1e-3])
    funnel = fitted(points, -points / jnp.array([1.0, 1e6, 1e-6]), whitening_of(points))
    np.testing.assert_array_equal(funnel.slope, 0.0)
    np.testing.assert_allclose(funnel.turn @ funnel.turn.T, np.eye(3), atol=1e-5)
