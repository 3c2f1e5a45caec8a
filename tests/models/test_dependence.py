"""Whether dynamics are noisy is read off their trace, not off a draw."""

import jax
from jax import numpy as jnp

from pfbr.models.dependence import depends_on_first


def test_noise_is_told_from_its_absence():
    key, x = jax.random.key(0), jnp.ones(2)
    assert depends_on_first(lambda key, x: x + jax.random.normal(key, (2,)), key, x)
    assert not depends_on_first(lambda key, x: 2 * x, key, x)


def test_a_key_that_is_used_and_thrown_away_is_no_noise():
    def looks_noisy(key, x):
        jax.random.normal(key, (2,))
        return x

    assert not depends_on_first(looks_noisy, jax.random.key(0), jnp.ones(2))


def test_noise_inside_a_loop_is_seen():
    def walk(key, x):
        return jax.lax.scan(lambda x, k: (x + jax.random.normal(k, (2,)), None), x, jax.random.split(key, 3))[0]

    assert depends_on_first(walk, jax.random.key(0), jnp.ones(2))
