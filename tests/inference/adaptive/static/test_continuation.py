"""Rows that are not kept: exact between the particles for a normal, honest about the rest, bounded far away."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr.inference.adaptive.static.carried import carried_prior, with_row
from pfbr.inference.adaptive.static.continuation import fit_continuation
from pfbr.inference.adaptive.static.target import Target
from tests.inference.adaptive.static.problems import banana, linear_gaussian

ROWS = jnp.array([[1.0, 0.5, 0.3], [-0.2, 1.0, 2.0]])
N = 128
told = jax.jit(lambda known, points: known.log_likelihood(points))


def cloud(key, n=N, d=2):
    return 2.0 * jax.random.normal(jax.random.key(key), (n, d))


def rows_of(target, rows):
    return jax.vmap(lambda x: sum(target.log_likelihood(x, row) for row in rows))


def continuation(target, rows, points, log_weights=None):
    carried = carried_prior(target, points)
    for row in rows:
        carried = with_row(carried, target, points, row)
    if log_weights is None:
        log_weights = jnp.full(len(points), -jnp.log(len(points)))
    fit = lambda values, scores, points: fit_continuation(target.log_prior, values, scores, points, log_weights)
    return jax.jit(fit)(carried.values, carried.scores, points)


def test_a_normal_is_continued_exactly(x64):
    known = continuation(linear_gaussian(), ROWS, cloud(0))
    elsewhere = 0.3 * cloud(1)
    exact = rows_of(linear_gaussian(), ROWS)(elsewhere)
    np.testing.assert_allclose(jnp.diff(told(known, elsewhere)), jnp.diff(exact), rtol=1e-6, atol=1e-6)
    assert float(known.misfit()) < 1e-12
    assert float(known.variance()) < 1e-12


def test_whatever_the_prior_normal_rows_are_continued_exactly(x64):
    """Groups whose spread is unknown: a funnel that no frame fits, and that nobody has to fit."""

    def log_prior(x):
        return -0.5 * x[0] ** 2 - jnp.sum(0.5 * (x[1:] / jnp.exp(x[0])) ** 2 + x[0])

    target = Target(log_prior, lambda x, row: -0.5 * jnp.sum((row - x[1:]) ** 2))
    x = cloud(0, d=5)
    points = x.at[:, 1:].multiply(jnp.exp(x[:, :1]))
    rows = jnp.array([[1.0, 0.2, -0.4, 2.0], [0.3, 0.3, 0.1, 1.0]])
    log_weights = jax.nn.log_softmax(rows_of(target, rows)(points))
    known = continuation(target, rows, points, log_weights)
    elsewhere = jnp.array([[0.5, 0.4, 0.1, 0.0, 1.0], [-1.0, 0.2, 0.3, 0.1, 0.5], [0.0, 1.0, 0.0, -1.0, 2.0]])
    exact = rows_of(target, rows)(elsewhere)
    np.testing.assert_allclose(jnp.diff(told(known, elsewhere)), jnp.diff(exact), rtol=1e-4, atol=1e-4)


def test_a_bent_likelihood_is_continued_as_well_as_it_says():
    """Between the particles; and it says how well by leaving them out, one at a time."""
    target, rows = banana(), jnp.array([[1.0]])
    exact = rows_of(target, rows)
    many = jax.random.normal(jax.random.key(2), (20_000, 2))
    drawn = jax.random.choice(jax.random.key(3), many, (2 * N,), p=jax.nn.softmax(exact(many)))
    points, elsewhere = drawn[:N], drawn[N:]
    known = continuation(target, rows, points)
    off = told(known, elsewhere) - exact(elsewhere)
    typical = float(jnp.median(jnp.abs(off - jnp.median(off))))
    assert typical < 0.25
    assert typical < 2 * float(jnp.sqrt(known.misfit()))


def test_noise_is_not_believed():
    """Of what no neighbour can tell nothing is: the quadratic alone is better."""
    points = cloud(0, 256, 8)
    noise = 3.0 * jax.random.normal(jax.random.key(1), (256,))
    scores = -points + 3.0 * jax.random.normal(jax.random.key(2), points.shape)
    values = -0.5 * jnp.sum(points**2, axis=1) + noise
    known = fit_continuation(lambda x: 0.0, values, scores, points, jnp.full(256, -jnp.log(256.0)))
    elsewhere = cloud(3, 256, 8)
    believed = told(known, elsewhere) - known.smooth(known.frame.latent(elsewhere))
    assert float(jnp.std(believed)) < 1.0
    assert float(known.misfit()) < 1.01 * float(jnp.var(known.left))


@pytest.mark.parametrize("d", [2, 8])
def test_far_from_all_particles_there_is_nothing(d):
    """Rows that grow without end, as a tangent or a quadratic may say: chains must not follow them for ever."""
    points = 0.5 * cloud(0, d=d)
    target = Target(lambda x: 0.0, lambda x, row: 3.0 * x[0] + 0.1 * x[1] ** 2)
    known = continuation(target, jnp.zeros((1, 1)), points)
    along = jnp.eye(d)[0] * jnp.array([1.0, 100.0, 1000.0])[:, None]
    near, far, farther = told(known, along)
    assert near > far > farther


def test_a_particle_that_is_all_but_impossible_does_not_drown_the_others():
    """A count whose rate is e⁶⁰ at one of them: its value is the largest number of all, with the wrong sign."""
    target = Target(lambda x: -0.5 * jnp.sum((x / 2) ** 2), lambda x, row: 2 * jnp.sum(x[:4]) - jnp.exp(jnp.sum(x[:4])))
    rows, points, near = jnp.zeros((1, 1)), 0.5 * cloud(0, 256, 10), 0.3 * cloud(1, 64, 10)
    far = points.at[7].set(15.0)
    log_weights = jax.nn.log_softmax(rows_of(target, rows)(far))
    believed = [told(continuation(target, rows, some, log_weights), near) for some in (points, far)]
    off = believed[1] - believed[0]
    assert float(jnp.std(off)) < 0.5


def test_impossible_particles_are_not_asked():
    target = banana()
    points = cloud(0)
    broken = Target(target.log_prior, lambda x, row: jnp.where(x[0] > 1, -jnp.inf, target.log_likelihood(x, row)))
    known = continuation(broken, jnp.array([[1.0]]), points)
    assert not bool(jnp.any(known.alive & (points[:, 0] > 1)))
    assert int(jnp.sum(known.alive)) > N // 2
    assert bool(jnp.all(jnp.isfinite(told(known, cloud(1)))))
