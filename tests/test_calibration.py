"""Calibration passes what is right and refuses what is not; what cannot be calibrated is told why."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp
from jaxtyping import Array
from typer.testing import CliRunner

import pfbr
from pfbr.baselines import Prior
from pfbr.cli import app
from pfbr.errors import FileError, InputError, ModelError
from pfbr.inference.method import Method
from pfbr.judging.calibration.calibrate import Calibration, CalibrationSettings, calibrate
from pfbr.models import GaussianMean, GaussianMixture, LinearDynamics, LogisticRegression
from pfbr.particles.particles import equally_weighted
from pfbr.reporting.calibration_page import calibration_page

SETTINGS = CalibrationSettings(streams=200, length=6, num_particles=64)
SMALL = CalibrationSettings(streams=200, length=3, num_particles=16)
SHARP = GaussianMean(1, observation_std=0.5)


class Sabotaged(Method):
    """The operator with its particles pulled together by a third: too sure of itself."""

    inner: Method

    def init(self, key, model, num_particles):
        return self.inner.init(key, model, num_particles)

    def update(self, key, model, state, observation):
        return self.inner.update(key, model, state, observation)

    def particles(self, state):
        points = self.inner.particles(state).points
        return equally_weighted(jnp.mean(points, 0) + 0.67 * (points - jnp.mean(points, 0)))


class Prior(Prior):
    """Learns nothing, and breaks where an observation is above a limit; one compiled function serves several tests."""

    limit: Array

    def update(self, key, model, state, observation):
        state, info = super().update(key, model, state, observation)
        return equally_weighted(state.points + jnp.where(observation[0] > self.limit, jnp.nan, 0.0)), info


class Unsimulated(GaussianMean):
    sample_observation = pfbr.Model.sample_observation


class NanLikelihood(GaussianMean):
    def log_likelihood(self, x, observation):
        return jnp.log(super().log_likelihood(x, observation))


class NanObservation(GaussianMean):
    def sample_observation(self, key, x):
        return jnp.log(super().sample_observation(key, x))


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
    assert bad.settings["failed_stages"] == [1, 2, 3, 4, 5, 6]
    assert "first observation on" in bad.verdict
    assert bad.settings["p_value"] < 1e-6
    if isinstance(model, GaussianMean):
        assert good.settings["order_gap"] < 0.05


def test_a_method_that_learns_nothing_is_refused_by_the_likelihood_alone():
    """Its coordinates are draws of the prior, as the truths are. Refused at 1e-6; a right one would be at 0.05."""
    record = calibrate(jax.random.key(1), Prior(jnp.asarray(jnp.inf)), SHARP, settings=SMALL)
    assert record.settings["failed"] == {"likelihood of the data": 3}
    assert record.settings["p_value"] < 1e-6
    assert "Each coordinate by itself looks right" in record.settings["advice"]
    assert record.settings["order_gap"] == 0.0  # nothing depends on the data, so not on their order


def test_particles_that_break_are_reported_and_not_ranked():
    record = calibrate(jax.random.key(2), Prior(jnp.asarray(1.0)), SHARP, settings=SMALL)
    assert 0 < record.settings["streams_not_finite"] < 200
    assert "no longer finite" in record.verdict
    assert np.isnan(record.arrays["ranks"]).any()
    assert "order_gap" not in record.settings


def test_a_stop_keeps_what_is_done_and_does_not_change_it():
    def stop(done):
        if done >= 40:
            raise KeyboardInterrupt

    method = Prior(jnp.asarray(jnp.inf))
    whole = calibrate(jax.random.key(3), method, SHARP, settings=SMALL)
    part = calibrate(jax.random.key(3), method, SHARP, settings=SMALL, progress=stop)
    assert part.settings["interrupted"]
    assert not whole.settings["interrupted"]
    assert part.settings["streams"] == 40
    np.testing.assert_array_equal(part.arrays["ranks"], whole.arrays["ranks"][:40])

    class Early(Method):
        def init(self, key, model, num_particles):
            raise KeyboardInterrupt

        def update(self, key, model, state, observation): ...

        def particles(self, state): ...

    with pytest.raises(KeyboardInterrupt):
        calibrate(jax.random.key(3), Early(), SHARP, settings=SMALL)


def test_what_cannot_be_calibrated_is_told_why():
    key = jax.random.key(0)
    for settings, words in [
        (CalibrationSettings(streams=19), "at least 20"),
        (CalibrationSettings(length=0), "`length`"),
        (CalibrationSettings(level=0.0), "`level`"),
    ]:
        with pytest.raises(InputError, match=words):
            calibrate(key, Prior(), SHARP, settings=settings)
    with pytest.raises(ModelError, match="sample_observation"):
        calibrate(key, Prior(), Unsimulated(1), settings=SMALL)
    with pytest.raises(ModelError, match=r"not finite \(simulated stream"):
        calibrate(key, Prior(), NanObservation(1), settings=SMALL)
    with pytest.raises(ModelError, match="at the very unknown"):
        calibrate(key, Prior(), NanLikelihood(1), settings=SMALL)


def command(*words: str):
    return CliRunner().invoke(app, ["calibrate", *words])


def test_the_command_writes_records_and_a_page(tmp_path):
    out = tmp_path / "c"
    size = ["--streams", "40", "--length", "3", "--particles", "32"]
    result = command("gaussian", "gaussian-mean:dim=1", *size, "--out", str(out))
    assert result.exit_code == 0, result.output
    record = Calibration.load(out)
    assert record.arrays["ranks"].shape == (40, 3, 2)
    page = (out / "index.html").read_text(encoding="utf-8")
    assert record.verdict in page
    assert "Calibration: gaussian on gaussian-mean:dim=1" in page
    assert "--streams 40 --length 3 --particles 32 --repair off --seed 0" in record.settings["command"]
    (out / "index.html").unlink()
    again = CliRunner().invoke(app, ["report", str(out)])
    assert again.exit_code == 0
    assert (out / "index.html").read_text(encoding="utf-8") == page

    torn = (out / "calibration.npz").read_bytes()
    for damaged in (torn[: len(torn) // 2], torn[:200] + bytes(200) + torn[400:], b""):
        (out / "calibration.npz").write_bytes(damaged)
        with pytest.raises(FileError, match="damaged"):
            calibration_page(out)
    np.savez(out / "calibration.npz", ranks=record.arrays["ranks"])
    with pytest.raises(FileError, match="another version"):
        calibration_page(out)
    with pytest.raises(FileError, match="pfbr calibrate"):
        Calibration.load(tmp_path)


def test_the_command_refuses_in_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    for words, expected in [
        ("gaussian gaussian-mean --out file", "is a file"),
        ("gaussian gaussian-mean --out c --repair perhaps", "--repair is one of"),
        ("mixture gaussian-mean:dim=3 --out c", "error: "),
        ("gaussian gaussian-mean --out c --streams 5", "at least 20"),
        ("nobody.pfbr gaussian-mean --out c", "nobody.pfbr"),
    ]:
        placed = [str(tmp_path / word) if word in ("file", "c") else word for word in words.split()]
        result = command(*placed)
        assert result.exit_code == 2, (words, result.output)
        assert expected in result.output, (words, result.output)
        assert not (tmp_path / "c").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("operator", "model", "right"),
    [
        ("mixture", GaussianMixture(), True),
        ("plane", LogisticRegression(2), True),
        ("mixture-paper", GaussianMixture(), False),
        ("gaussian-2-paper", GaussianMean(2, observation_std=3.0), False),
    ],
)
def test_shipped_operators_pass_and_the_papers_are_refused_where_they_learn_too_little(operator, model, right):
    """25 stages, 256 particles. A right operator fails here once in a thousand times, a wrong one is clearly so."""
    record = calibrate(jax.random.key(71000), pfbr.shipped(operator), model)
    assert record.settings["p_value"] > 0.001 if right else record.settings["p_value"] < 1e-6
