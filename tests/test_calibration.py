"""Calibration passes what is right and refuses what is not; the page says so in a sentence."""

import dataclasses

import jax
import numpy as np
import pytest
import scipy.stats
from jax import numpy as jnp
from typer.testing import CliRunner

import pfbr
from pfbr.calibration import Calibration, CalibrationSettings, calibrate, ecdf, ecdf_band, rank
from pfbr.cli import app
from pfbr.errors import FileError
from pfbr.models import GaussianMean, LinearDynamics
from pfbr.online import OnlineMethod
from pfbr.particles import Particles, equally_weighted, normalise

SETTINGS = CalibrationSettings(streams=200, length=6, num_particles=64)


class Sabotaged(OnlineMethod):
    """The operator with its particles pulled together by a third: too sure of itself."""

    inner: OnlineMethod

    def init(self, key, model, num_particles):
        return self.inner.init(key, model, num_particles)

    def update(self, key, model, state, observation):
        return self.inner.update(key, model, state, observation)

    def particles(self, state):
        points = self.inner.particles(state).points
        return equally_weighted(jnp.mean(points, 0) + 0.67 * (points - jnp.mean(points, 0)))


def test_a_band_is_left_as_often_as_it_says():
    """4000 uniform samples of 100: the rate of leaving a 5 % band, to five standard errors (0.017)."""
    low, high = ecdf_band(100, 0.05)
    curves = ecdf(np.random.default_rng(1).uniform(size=(100, 4000)))
    left = np.mean(np.any((curves < low[:, None]) | (curves > high[:, None]), axis=0))
    assert 0.02 < left < 0.067


def test_ranks_of_one_more_draw_are_uniform_with_and_without_weights():
    """Particles from N(0, 1), or from N(0, 4) with weights; the truth from N(0, 1). Kolmogorov at 1e-4."""

    @jax.jit
    @jax.vmap
    def ranks(key):
        a, b, c, d = jax.random.split(key, 4)
        points, truth = jax.random.normal(a, (200, 1)), jax.random.normal(b, (1,))
        wide = 2 * points
        weighted = Particles(wide, normalise(-0.5 * wide[:, 0] ** 2 + 0.125 * wide[:, 0] ** 2))
        return rank(c, equally_weighted(points), truth)[0], rank(d, weighted, truth)[0]

    for found in ranks(jax.random.split(jax.random.key(0), 2000)):
        assert scipy.stats.kstest(np.asarray(found), "uniform").pvalue > 1e-4


@pytest.mark.parametrize(
    "model",
    [LinearDynamics.random(0, 2), pytest.param(GaussianMean(2), marks=pytest.mark.slow)],
    ids=["dynamics", "static"],
)
def test_the_gaussian_operator_passes_and_a_sabotaged_one_fails(model):
    """A right operator is refused one time in twenty; the seed is fixed."""
    good = calibrate(jax.random.key(0), pfbr.gaussian_operator(), model, settings=SETTINGS)
    assert good.trusted
    assert good.verdict.startswith("Trust")
    np.testing.assert_allclose(good.arrays["coverage"].mean((1, 2)), [0.5, 0.8, 0.95], atol=0.04)
    bad = calibrate(jax.random.key(0), Sabotaged(pfbr.gaussian_operator()), model, settings=SETTINGS)
    assert not bad.trusted
    assert bad.settings["failed_from"] == 1
    assert "first observation on" in bad.verdict
    if isinstance(model, GaussianMean):
        assert good.settings["order_gap"] < 0.05


def test_the_command_writes_records_and_a_page(tmp_path):
    words = ["calibrate", "gaussian", "gaussian-mean:dim=1", "--out", str(tmp_path / "c")]
    result = CliRunner().invoke(app, [*words, "--streams", "40", "--length", "3", "--particles", "32"])
    assert result.exit_code == 0, result.output
    record = Calibration.load(tmp_path / "c")
    assert record.arrays["ranks"].shape == (40, 3, 1)
    page = (tmp_path / "c" / "index.html").read_text(encoding="utf-8")
    assert record.verdict[:40] in page
    assert page.count("<svg") == 2
    assert "http://" not in page.replace("http://www.w3.org", "").replace("http://purl.org", "").replace(
        "http://creativecommons.org", ""
    )
    with pytest.raises(FileError, match="pfbr calibrate"):
        Calibration.load(tmp_path)
    assert dataclasses.is_dataclass(record)
