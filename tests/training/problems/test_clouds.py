"""Clouds between prior and posterior have the moments that they should have, and are made only once."""

import equinox as eqx
import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr.errors import FileError
from pfbr.training.problems import store
from pfbr.training.problems.clouds import SHARES
from pfbr.training.problems.kinds import gaussian, wave
from pfbr.training.problems.problem import HEAVY, LUMPS, NORMAL, draw_prior
from pfbr.training.problems.store import make_clouds

KINDS = (gaussian,)
MAKE = {"d": 2, "kinds": KINDS, "chosen": jnp.arange(1), "old": jnp.arange(1), "num": 64}


@pytest.fixture(scope="module")
def clouds():
    return make_clouds(jax.random.split(jax.random.key(0), store.PIECE), **MAKE)


def test_linear_problems_have_the_posterior_of_linear_problems(clouds):
    """With a normal prior all clouds are normal, with known means: 64 draws each, 6 standard errors over the worst of
    some dozens of problems (a false alarm in a million)."""
    checked = 0
    for i in range(store.PIECE):
        problem = jax.tree.map(lambda leaf, i=i: np.asarray(leaf)[i], clouds.problem)
        if problem.prior.shape != NORMAL:
            continue
        for share, cloud in zip(SHARES, np.asarray(clouds.points[i]), strict=True):
            precision, weighted = np.eye(2), np.zeros(2)
            for terms, power in ((problem.old, 1.0), (problem.new, share)):
                for j in np.flatnonzero(terms.on):
                    slope = terms.sharpness[j] * terms.directions[j, 0]
                    precision += power * np.outer(slope, slope)
                    weighted += power * slope * (slope @ terms.truth[j] + terms.normals[j, 0])
            root = np.linalg.cholesky(precision)
            off = root.T @ (cloud.mean(axis=0) - np.linalg.solve(precision, weighted))
            assert np.abs(off).max() < 6 / np.sqrt(64)
            checked += 1
    assert checked > 50


def test_priors_have_draws_of_their_own_densities():
    """E_p[q/p] = 1 for a narrow normal q, whatever the shape: 20,000 draws, within a tenth."""
    prior = draw_prior(jax.random.key(3), 2)
    for shape, log_constant in ((NORMAL, -np.log(2 * np.pi)), (LUMPS, -np.log(2 * np.pi)), (HEAVY, None)):
        one = eqx.tree_at(lambda p: (p.shape, p.freedom), prior, (jnp.asarray(shape), jnp.asarray(5.0)))
        points = one.sample(jax.random.key(1), 20_000)
        if log_constant is None:  # of Student's t: Γ((ν + 2)/2) / (Γ(ν/2) ν π) = 1/(2π)
            log_constant = -np.log(2 * np.pi)
        at = np.asarray(one.means[0]) if shape == LUMPS else np.zeros(2)
        log_q = -0.5 * np.sum((np.asarray(points) - at) ** 2, axis=1) / 0.3**2 - np.log(2 * np.pi * 0.3**2)
        log_p = np.asarray(jax.vmap(one.log_density)(points)) + log_constant
        assert abs(np.mean(np.exp(log_q - log_p)) - 1) < 0.1


def test_problems_are_made_once_and_read_again(tmp_path):
    told: list[str] = []
    settings = {"dims": (2,), "count": 1, "num_particles": 64, "tell": told.append}
    store.ensure(tmp_path, KINDS, **settings)
    store.ensure(tmp_path, KINDS, **settings)
    assert len(told) == 1
    read = store.read(tmp_path, KINDS, 2, num_particles=64)
    assert read.points.shape == (store.PIECE, len(SHARES), 64, 2)
    with pytest.raises(FileError, match="other kinds"):
        store.read(tmp_path, (wave,), 2, num_particles=64)
    with pytest.raises(FileError, match="make them first"):
        store.read(tmp_path, KINDS, 3, num_particles=64)
