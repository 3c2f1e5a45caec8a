"""A compensated sum of a million float32 terms is that of float64."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr.particles.summation import CompensatedSum

NUM = 1_000_000


@jax.jit
def both(terms):
    """The compensated sum, and the plain one in the same order."""

    def add(carry, term):
        total, plain = carry
        return (total.add(term), plain + term), None

    (total, plain), _ = jax.lax.scan(add, (CompensatedSum.zero(), jnp.zeros(())), terms)
    return total, plain


TERMS = {
    "log likelihoods": lambda rng: -1.4 - rng.exponential(size=NUM),
    "one large, many small": lambda rng: np.concatenate([[1e7], np.full(NUM - 1, 1e-3)]),
    "many small, one large": lambda rng: np.concatenate([np.full(NUM - 1, 1e-3), [1e7]]),
    "signs that cancel": lambda rng: np.tile([1e6, 0.01, -1e6, 0.01], NUM // 4),
}


@pytest.mark.parametrize("name", TERMS)
def test_a_million_terms_lose_nothing(name):
    terms = TERMS[name](np.random.default_rng(0)).astype(np.float32)
    right = terms.astype(np.float64).sum()
    total, plain = both(jnp.asarray(terms))
    found = np.float64(total.total) + np.float64(total.lost)
    assert abs(found - right) < 1e-9 * np.abs(terms).max() + 1e-10 * abs(right)
    assert np.float32(total.value) == np.float32(right)
    assert abs(float(plain) - right) > 5e-7 * abs(right)  # what it is for


def test_it_starts_at_zero_and_keeps_infinities_apart():
    assert float(CompensatedSum.zero().value) == 0.0
    impossible = CompensatedSum.zero().add(jnp.asarray(-jnp.inf))
    assert np.isneginf(impossible.add(jnp.asarray(1.0)).value)
