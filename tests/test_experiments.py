"""What the experiments compute and say, where the answer is known."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr.io.records import Measurement
from pfbr.metrics.mmd import mmd2
from pfbr.models import GaussianMean
from pfbr.paper.judging import BLOCK, mmd2_in_blocks
from pfbr.paper.later_starts import LateStarts
from pfbr.paper.table1_view import frontier
from pfbr.paper.views import Measured, best_rows, cell, number, standing
from pfbr.particles.particles import Particles, equally_weighted, normalise


@pytest.mark.parametrize("weighted", [False, True])
def test_pairs_within_random_blocks_give_the_mmd_of_all_pairs_on_average(weighted):
    """64 random partitions of one set; the mean is within z = 5 of the full U-statistic (false alarm: 1e-6)."""
    keys = jax.random.split(jax.random.key(0), 4)
    points, draws = jax.random.normal(keys[0], (2 * BLOCK, 2)), 0.3 + jax.random.normal(keys[1], (50, 2))
    particles = equally_weighted(points)
    if weighted:
        particles = Particles(points, normalise(0.3 * jax.random.normal(keys[2], (2 * BLOCK,))))

    @jax.jit
    def judged(particles, keys):
        return mmd2(particles, draws, "rbf").value, jax.lax.map(
            lambda key: mmd2_in_blocks(key, particles, draws, "rbf"), keys
        )

    full, several = judged(particles, jax.random.split(keys[3], 64))
    error = np.std(several, ddof=1) / 8
    assert 0 < error < 0.01
    assert abs(np.mean(several) - full) < 5 * error + 1e-4 * weighted  # weights: a ratio of averages, biased a little


def test_late_starts_are_posteriors_of_earlier_observations():
    """Mean and unknown of late tasks: E m² + E v = 1, and x − m has variance v, each within z = 5."""
    family = LateStarts(GaussianMean(1, prior_std=1.0, observation_std=3.0), 90)
    tasks = jax.vmap(lambda key: family.sample(key, 2))(jax.random.split(jax.random.key(1), 4000))
    mean, std, x = tasks.model.mean[:, 0], tasks.model.std, tasks.truths[:, 0, 0]
    seen = 9.0 * (1.0 / std**2 - 1.0)
    assert np.abs(seen - np.round(seen)).max() < 0.02  # a whole number of observations
    assert (np.round(seen).min(), np.round(seen).max()) == (0, 90)
    for values in (mean**2 + std**2 - 1.0, ((x - mean) / std) ** 2 - 1.0):
        assert abs(values.mean()) < 5 * values.std() / 4000**0.5


def test_numbers_are_written_as_a_reader_likes_them():
    assert [number(v) for v in (0.1234, -1.5, 1234.5, 0.0, 2e-6, np.inf)] == [
        "0.123",
        "−1.50",
        "1,234",
        "0.000",
        "2.0e−6",
        "not finite",
    ]
    assert cell(Measurement("a", "m", None, 14.8691, 0.0031), signed=False) == "14.869 ± 0.003"
    assert cell(Measurement("a", "m", None, 8.0, 7.86)) == "+8.0 ± 7.9"  # no more digits than the error allows
    assert cell(Measurement("a", "m", None, 2.1e9, 1.9e9)) == "+2.1e9 ± 1.9e9"
    assert cell(None) == "–"


def measured(**values: tuple[float, float]) -> Measured:
    return Measured(Measurement(name.replace("_", "-"), "m", None, *value, 256) for name, value in values.items())


def test_a_rival_that_wins_is_named():
    def said(**rivals):
        everyone = measured(pfbr=(0.0, 0.01), **rivals)
        (finding,) = standing(everyone, "m", "pfbr", [*rivals], 256, where="Here", unit="nats")
        return finding

    wins = said(enkf=(-1.0, 0.01), smc=(1.0, 0.01))
    assert wins.good is False
    assert "beaten by ensemble Kalman filter" in wins.text
    assert "below bootstrap SMC" in wins.text
    assert said(smc=(1.0, 0.01)).good is True
    assert "few streams decide" in said(smc=(1e9, 1e9)).text  # far above, whatever its noise
    noisy = said(smc=(0.3, 3.0))
    assert noisy.good is None
    assert "within two standard errors" in noisy.text
    lost = standing(measured(pfbr=(np.inf, np.nan)), "m", "pfbr", ["smc"], 256, where="Here", unit="nats")
    assert lost[0].good is False


def test_bold_is_the_best_and_what_lies_within_its_noise():
    column = [Measurement("a", "m", None, v, e) for v, e in ((0.0, 0.1), (0.2, 0.1), (0.5, 0.1), (5.0, 9.0), (-1, 0.1))]
    assert best_rows(column, [True, True, True, True, False]) == {0, 1}  # large errors earn nothing


def test_the_frontier_holds_what_nothing_faster_beats():
    spots = [("a", 1, 1.0, 5.0), ("b", 1, 2.0, 6.0), ("c", 1, 3.0, 4.0), ("d", 1, 3.0, 4.5), ("e", 1, 9.0, 1.0)]
    assert [spot[0] for spot in frontier(spots[::-1])] == ["a", "c", "e"]


def test_late_models_know_their_own_truth():
    family = LateStarts(GaussianMean(2), 90)
    task = family.sample(jax.random.key(2), 3)
    system = task.model.linear_gaussian()
    assert jnp.allclose(system.mean, task.model.mean)
    assert jnp.allclose(system.cov, task.model.std**2 * jnp.eye(2))
