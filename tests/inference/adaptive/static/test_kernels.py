"""Moves leave their target as it is, mix it, and stop when it has forgotten its start."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr.inference.adaptive.static import kernels
from pfbr.inference.adaptive.static.kernels import initial_tuning, move_until_mixed
from pfbr.inference.adaptive.static.target import Evaluation
from pfbr.particles.whitening import whitening_of

RUNS, N = 64, 64


def straightened(x):
    """Independent standard normals under the target below."""
    return jnp.stack([2.0 * (x[..., 0] + x[..., 1] ** 2), x[..., 1]], -1)


def bent(z):
    return jnp.stack([0.5 * z[..., 0] - z[..., 1] ** 2, z[..., 1]], -1)


def log_target(x):
    return -0.5 * jnp.sum(straightened(x) ** 2)


def log_half(x):
    """A half plane of a normal: hard support, whose edge no gradient tells of."""
    return jnp.where(x[0] > 0, -0.5 * jnp.sum(x**2), -jnp.inf)


def at(log_density):
    def evaluate(points):
        value, score = jax.vmap(jax.value_and_grad(log_density))(points)
        return Evaluation(value, score, jnp.zeros_like(value), jnp.zeros_like(score))

    return evaluate


def moved(log_density, key, points, *, moves):
    evaluate, one = at(log_density), jnp.ones(())
    tuning = initial_tuning(2, points.dtype)
    bound = jnp.asarray(moves)
    frame = whitening_of(points)
    return move_until_mixed(
        key, evaluate, one, points, evaluate(points), frame, tuning, memory=jnp.asarray(0.3), least=bound, most=bound
    )


def z_scores(values):
    """Of the means over runs against zero."""
    values = np.asarray(values, float)
    return values.mean(0) / (values.std(0, ddof=1) / np.sqrt(len(values)))


CASES = {
    "bent": (log_target, bent, straightened, 0.0),
    "hard support": (log_half, lambda z: z.at[..., 0].set(jnp.abs(z[..., 0])), lambda x: x, np.sqrt(2 / np.pi)),
}


@pytest.mark.parametrize("name", CASES)
def test_exact_draws_stay_exact_draws(name):
    """Means, squares and products of the straightened coordinates over 64 runs: z < 5, a false alarm in 10⁵."""
    log_density, draw, undo, first_mean = CASES[name]
    keys = jax.random.split(jax.random.key(3), RUNS)
    starts = draw(jax.random.normal(jax.random.key(4), (RUNS, N, 2)))
    end = jax.jit(jax.vmap(lambda k, p: moved(log_density, k, p, moves=15)))(keys, starts)
    z = np.asarray(undo(end.points), float)
    means = z.mean(1) - np.array([first_mean, 0.0])
    assert np.all(np.abs(z_scores(means)) < 5)
    assert np.all(np.abs(z_scores((z**2).mean(1) - 1)) < 5)
    assert abs(z_scores((z[..., 0] * z[..., 1]).mean(1))) < 5
    assert np.all(np.mean(end.points != starts, axis=(1, 2)) > 0.8)


def test_moves_stop_when_the_start_is_forgotten():
    points = jax.random.normal(jax.random.key(0), (256, 2))
    evaluate = at(lambda x: -0.5 * jnp.sum(x**2))
    end = jax.jit(
        lambda k: move_until_mixed(
            k,
            evaluate,
            jnp.ones(()),
            points,
            evaluate(points),
            whitening_of(points),
            initial_tuning(2, points.dtype),
            memory=jnp.asarray(0.3),
            least=jnp.asarray(2),
            most=jnp.asarray(200),
        )
    )(jax.random.key(1))
    assert 2 <= int(end.moves) < 40
    assert float(end.memory) <= 0.3


def test_memory_is_the_worst_correlation_with_the_start():
    start = jax.random.normal(jax.random.key(0), (1000, 2))
    other = jax.random.normal(jax.random.key(1), (1000, 2))
    assert float(kernels.memory_of(start, start)) == pytest.approx(1.0, abs=1e-5)
    assert float(kernels.memory_of(other, start)) < 0.15
    assert float(kernels.memory_of(other.at[:, 1].set(start[:, 1]), start)) == pytest.approx(1.0, abs=1e-5)
    assert float(kernels.memory_of(-start, start)) == pytest.approx(1.0, abs=1e-5)  # squares remember
