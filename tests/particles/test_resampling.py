"""Resampling keeps every particle as often as its weight says."""

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import numpy as jnp

from pfbr.errors import InputError
from pfbr.particles.particles import Particles, equally_weighted, normalise
from pfbr.particles.resampling import (
    SCHEMES,
    check_scheme,
    check_threshold,
    prefix_sums,
    resample,
    systematic,
    when_poor,
)

N = 16
counted = jax.jit(
    lambda key, log_weights, scheme: jnp.bincount(SCHEMES[scheme](key, log_weights, N), length=N), static_argnums=2
)


@given(seed=st.integers(0, 999), spread=st.floats(0, 20))
def test_systematic_resampling_rounds_to_a_neighbouring_whole_number(seed, spread):
    """⌊N w⌋ or ⌈N w⌉ copies of each; float32 sums move a boundary by 1e-6."""
    log_weights = spread * np.random.default_rng(seed).normal(size=N)
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    copies = np.asarray(counted(jax.random.key(seed), normalise(jnp.asarray(log_weights)), "systematic"))
    assert copies.sum() == N
    assert np.all(copies >= np.floor(N * weights - 1e-4))
    assert np.all(copies <= np.ceil(N * weights + 1e-4))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_copies_are_unbiased(scheme):
    """Mean copies over 4000 keys against N w, z = 6 at each of 16 particles."""
    weights = np.random.default_rng(1).dirichlet(np.full(N, 0.5))
    log_weights = jnp.log(jnp.asarray(weights))
    copies = jax.jit(jax.vmap(lambda k: counted(k, log_weights, scheme)))(jax.random.split(jax.random.key(0), 4000))
    error = np.sqrt(N * weights * (1 - weights) / 4000)  # of the independent draws; the comb's is smaller
    assert np.all(np.abs(np.asarray(copies).mean(0) - N * weights) < 6 * error + 1e-3)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_what_has_no_weight_is_never_kept(scheme):
    log_weights = jnp.where(jnp.arange(N) % 3 == 0, -jnp.inf, 0.0)
    copies = jax.jit(jax.vmap(lambda k: counted(k, normalise(log_weights), scheme)))(
        jax.random.split(jax.random.key(2), 200)
    )
    assert np.all(np.asarray(copies)[:, ::3] == 0)


def test_points_go_with_their_densities_and_equal_weights_keep_all():
    points = jnp.arange(2.0 * N).reshape(N, 2)
    kept = resample(jax.random.key(0), Particles(points, normalise(jnp.arange(float(N))), points[:, 0]), "systematic")
    np.testing.assert_array_equal(kept.log_density, kept.points[:, 0])
    np.testing.assert_allclose(np.exp(kept.log_weights), 1 / N, rtol=1e-6)
    same = resample(jax.random.key(0), equally_weighted(points), "systematic")
    np.testing.assert_array_equal(same.points, points)
    assert same.log_density is None


@pytest.mark.parametrize(("threshold", "renewed"), [(0.0, False), (0.4, False), (0.6, True), (1.0, True)])
def test_it_happens_when_the_effective_sample_size_is_at_most_the_threshold(threshold, renewed):
    """Eight of sixteen particles share the weight: half the number is effective."""
    particles = Particles(jnp.zeros((N, 1)), normalise(jnp.where(jnp.arange(N) < 8, 0.0, -jnp.inf)))
    after = when_poor(particles, threshold, lambda p: Particles(p.points + 1.0, p.log_weights))
    assert bool(jnp.all(after.points == 1.0)) == renewed


def test_equal_weights_count_as_poor_at_threshold_one():
    """Rounding must not decide whether a filter that always resamples does."""
    for n in (3, 7, 100):
        after = when_poor(equally_weighted(jnp.zeros((n, 1))), 1.0, lambda p: Particles(p.points + 1.0, p.log_weights))
        assert bool(jnp.all(after.points == 1.0))


def test_unknown_schemes_and_thresholds_are_refused():
    with pytest.raises(InputError, match="systematic"):
        check_scheme("residual")
    with pytest.raises(InputError, match="threshold"):
        check_threshold(1.5)


@pytest.mark.parametrize("num", [7, 1024, 1025, 5000, 16384])
def test_sums_in_rows_are_those_one_after_another(num):
    whole = np.arange(num) % 5
    np.testing.assert_array_equal(prefix_sums(jnp.asarray(whole)), np.cumsum(whole))
    parts = np.random.default_rng(0).random(num)
    np.testing.assert_allclose(prefix_sums(jnp.asarray(parts, jnp.float32)), np.cumsum(parts), rtol=1e-5)


@pytest.mark.parametrize(("num", "kept"), [(3000, 3000), (3000, 500), (50, 4000)])
def test_an_even_comb_finds_the_ancestors_that_a_search_finds(num, kept):
    """A tooth within rounding of a sum may fall on either side of it."""
    weights = np.random.default_rng(1).dirichlet(np.full(num, 0.3))
    shift = float(jax.random.uniform(jax.random.key(2)))
    wanted = np.searchsorted(np.cumsum(weights), (np.arange(kept) + shift) / kept, side="right")
    found = np.asarray(systematic(jax.random.key(2), jnp.log(jnp.asarray(weights, jnp.float32)), kept))
    assert np.mean(found != wanted) < 0.01
    assert np.all(np.diff(found) >= 0)
