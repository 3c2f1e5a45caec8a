"""Densities from draws: the right kind is chosen, it is a density, and a bad fit is flagged with its reason."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp
from scipy.stats import norm

from pfbr.particles.fitted_density import fit_density

RNG = np.random.default_rng(0)
NORMAL = RNG.normal(size=(2000, 3)) @ np.array([[2.0, 0, 0], [1, 1e-3, 0], [0, 0, 50]]) + [5, -1, 300]
SIDES = np.where(RNG.uniform(size=2000) < 0.3, -4.0, 4.0)
MODES = np.stack([SIDES + RNG.normal(size=2000), 0.5 * SIDES + RNG.normal(size=2000)], axis=1)


@pytest.fixture(scope="module")
def modes():
    return fit_density(MODES)


def test_normal_draws_get_one_gaussian_with_their_moments():
    density, quality = fit_density(NORMAL)
    assert quality.kind == "gaussian"
    assert not quality.flagged, quality.reasons
    mean, cov = density.moments()
    np.testing.assert_allclose(mean, NORMAL.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(cov, np.cov(NORMAL.T), rtol=1e-3, atol=1e-3)
    assert abs(quality.gap) < 0.2


def test_units_change_nothing_but_the_density_by_their_factor(modes):
    rescaled, quality = fit_density(MODES * [1e3, 1.0])
    at = jnp.asarray(MODES[:20], jnp.float32)
    shifted = jax.vmap(rescaled.log_density)(at * jnp.array([1e3, 1.0])) + np.log(1e3)
    np.testing.assert_allclose(shifted, jax.vmap(modes[0].log_density)(at), atol=2e-3)
    assert quality.held_out == pytest.approx(modes[1].held_out - np.log(1e3), abs=1e-3)


def test_two_modes_get_more_than_one_gaussian(modes):
    density, quality = modes
    assert quality.kind == "mixture of 2"
    assert density.moments() is None
    assert not quality.flagged, quality.reasons
    normal = lambda sign: norm.pdf(MODES[:, 0], 4 * sign) * norm.pdf(MODES[:, 1], 2 * sign)
    exact = np.log(0.3 * normal(-1) + 0.7 * normal(1))
    assert np.mean(exact - jax.vmap(density.log_density)(jnp.asarray(MODES, jnp.float32))) < 0.02


def test_a_ring_gets_kernels():
    angle = RNG.uniform(0, 2 * np.pi, 3000)
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1) * (5 + 0.3 * RNG.normal(size=3000))[:, None]
    density, quality = fit_density(ring)
    assert quality.kind.startswith(("kernels", "mixture of 4"))
    centre, rim = density.log_density(jnp.zeros(2)), density.log_density(jnp.array([5.0, 0.0]))
    assert rim > centre + 1


def test_it_is_a_density_and_its_draws_are_from_it(modes):
    density, _ = modes
    side = np.linspace(-12, 12, 161)
    grid = jnp.asarray(np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2), jnp.float32)
    mass = np.exp(jax.vmap(density.log_density)(grid)).sum() * (side[1] - side[0]) ** 2
    assert mass == pytest.approx(1.0, abs=2e-3)
    drawn = jax.vmap(density.sample)(jax.random.split(jax.random.key(0), 4000))
    np.testing.assert_allclose(drawn.mean(axis=0), MODES.mean(axis=0), atol=0.3)  # z = 5
    np.testing.assert_allclose(np.cov(drawn.T), np.cov(MODES.T), rtol=0.15)


BAD = {
    "few draws": (RNG.normal(size=(40, 6)), "few draws"),
    "repeated draws": (np.repeat(RNG.normal(size=(15, 2)), 100, axis=0), "few draws: 15"),
    "heavy tails": (RNG.standard_cauchy(size=(2000, 2)), "heavy tails"),
    "a spike beside a cloud": (
        np.concatenate([1e-4 * RNG.normal(size=(900, 1)), RNG.normal(size=(1100, 1))])[RNG.permutation(2000)],
        "a poor fit",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_fit_is_flagged_with_its_reason(name):
    draws, reason = BAD[name]
    _, quality = fit_density(draws)
    assert quality.flagged
    assert any(reason in one for one in quality.reasons), quality


def test_good_fits_are_seldom_flagged():
    """Twelve sets of normal draws in three dimensions, of 100 to 1000: at most one flag."""
    flagged = [fit_density(RNG.normal(size=((100, 300, 1000)[i % 3], 3)))[1] for i in range(12)]
    assert sum(one.flagged for one in flagged) <= 1, [one.reasons for one in flagged if one.flagged]
