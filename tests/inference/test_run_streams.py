"""`pfbr.run` on frames: each stream as if it were alone, whatever the others are; rows come back as they came."""

import datetime
from typing import ClassVar

import jax
import numpy as np
import pandas as pd
import polars as pl
import pytest
from jax import numpy as jnp

import pfbr
from pfbr.errors import InputError, LikelihoodError
from pfbr.inference.streams import CHUNK
from pfbr.models import GaussianMean

SMALL = {"method": "gaussian", "num_particles": 16, "key": 3}
MODEL = GaussianMean(2, 1.0, 1.0)
BEGIN = datetime.datetime(2024, 5, 1)


class Drift(pfbr.StateSpaceModel):
    """A named state pushed by an input, in continuous time; linear and Gaussian."""

    unknowns: ClassVar = {"place": ()}

    def sample_prior(self, key):
        return {"place": jax.random.normal(key)}

    def prior_from_normal(self, z):
        return {"place": z[0]}

    def log_prior(self, x):
        return jax.scipy.stats.norm.logpdf(x["place"])

    def sample_transition(self, key, x, *, dt, inputs):
        return self.transition_from_normal(x, jax.random.normal(key, (1,)), dt=dt, inputs=inputs)

    def transition_from_normal(self, x, z, *, dt, inputs):
        return {"place": x["place"] + dt * inputs + jnp.sqrt(dt) * z[0]}

    def log_transition(self, x_next, x, *, dt, inputs):
        return jax.scipy.stats.norm.logpdf(x_next["place"], x["place"] + dt * inputs, jnp.sqrt(dt))

    def log_likelihood(self, x, observation):
        return jax.scipy.stats.norm.logpdf(observation, x["place"])

    def sample_observation(self, key, x):
        return x["place"] + jax.random.normal(key)

    def sample_inputs(self, key):
        return jax.random.normal(key)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """Streams of 1, 5 and 80 rows, mixed, out of order; gaps; two reports at one time; more than one chunk."""
    rng = np.random.default_rng(0)
    sensor = rng.permutation(["a"] * 80 + ["b"] * 5 + ["c"])
    made = pd.DataFrame({"sensor": sensor, "t": np.round(10 * rng.uniform(size=86), 1), "y": rng.normal(size=86)})
    made["push"] = rng.normal(size=86)
    made.loc[made.index[::9], "y"] = np.nan
    assert len(made) > CHUNK
    assert made[made.sensor == "a"].t.duplicated().any()
    return made.set_index(pd.Index([f"row {i}" for i in range(86)]))


COLUMNS = {"time": "t", "observation": "y", "inputs": "push"}


@pytest.fixture(scope="module")
def trace(frame):
    return pfbr.run(Drift(), frame, by="sensor", **COLUMNS, **SMALL)


def kalman(rows: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Means and variances after each row, in order of time."""
    mean, variance, now, found = 0.0, 1.0, 0.0, []
    for t, y, push in zip(rows.t, rows.y, rows.push, strict=True):
        mean, variance, now = mean + (t - now) * push, variance + (t - now), t
        if not np.isnan(y):
            gain = variance / (variance + 1)
            mean, variance = mean + gain * (y - mean), (1 - gain) * variance
        found.append((mean, variance))
    return tuple(np.array(found).T)


def test_every_stream_has_the_posterior_of_kalman(frame, trace):
    back = trace.to_frame()
    assert back.index.equals(frame.index)
    assert list(back.columns[:4]) == ["sensor", "t", "mean.place", "std.place"]
    for sensor in ("a", "b", "c"):
        mine = frame[frame.sensor == sensor].sort_values("t", kind="stable")
        mean, variance = kalman(mine)
        np.testing.assert_allclose(back.loc[mine.index, "mean.place"], mean, atol=1e-3)
        np.testing.assert_allclose(back.loc[mine.index, "std.place"] ** 2, variance * 16 / 15, rtol=0.02)


def test_a_stream_is_what_it_is_alone(frame, trace):
    """Bit for bit, with the key `fold_in(key, s)`, s the number of the stream in order of first appearance."""
    assert trace.streams == list(dict.fromkeys(frame.sensor))
    number = trace.streams.index("b")
    mine = frame[frame.sensor == "b"].sort_values("t", kind="stable")
    alone = pfbr.run(
        Drift(),
        mine.y.to_numpy(),
        times=mine.t.to_numpy(),
        inputs=mine.push.to_numpy(),
        **{**SMALL, "key": jax.random.fold_in(jax.random.key(3), number)},
    )
    np.testing.assert_array_equal(trace["b"].particles, alone.particles)
    np.testing.assert_array_equal(trace["b"].times, mine.t)
    assert trace["b"][-1].mean()["place"] == alone[-1].mean()["place"]
    session = trace["b"].session
    np.testing.assert_allclose(session.posterior.particles, alone.particles[-1], atol=1e-5)
    assert session.stage == 5
    other = frame.assign(y=np.where(frame.sensor == "a", 99.0, frame.y))
    other = pfbr.run(Drift(), other[(frame.sensor != "a") | (frame.t < 5)], by="sensor", **COLUMNS, **SMALL)
    np.testing.assert_array_equal(other["b"].particles, trace["b"].particles)
    with pytest.raises(InputError, match="there is no stream 'd'"):
        trace["d"]


def test_polars_comes_back_as_polars(frame, trace):
    back = pfbr.run(Drift(), pl.from_pandas(frame), by="sensor", **COLUMNS, **SMALL).to_frame(quantiles=[0.025])
    assert isinstance(back, pl.DataFrame)
    assert back.columns == ["sensor", "t", "mean.place", "std.place", "q2.5.place"]
    np.testing.assert_array_equal(back["mean.place"].to_numpy(), trace.to_frame()["mean.place"])


def test_a_frame_of_one_stream_is_the_stream(frame):
    mine = frame[frame.sensor == "b"]
    found = pfbr.run(Drift(), mine, **COLUMNS, **SMALL)
    sorted_rows = mine.sort_values("t", kind="stable")
    given = {"times": sorted_rows.t.to_numpy(), "inputs": sorted_rows.push.to_numpy()}
    alone = pfbr.run(Drift(), sorted_rows.y.to_numpy(), **given, **SMALL)
    np.testing.assert_array_equal(found.particles, alone.particles)  # in order of time
    back = found.to_frame()
    np.testing.assert_array_equal(back.loc[sorted_rows.index, "mean.place"], alone.mean()["place"])
    assert found[-1].mean()["place"] == alone.mean()["place"][-1]


def test_evidence_is_that_of_each_stream_and_gaps_add_nothing(frame):
    plain = pd.DataFrame({"s": ["p", "q", "p", "q", "p"], "a": [1.0, 2.0, np.nan, 1.0, 0.5]})
    plain["b"] = plain["a"]
    back = pfbr.run(MODEL, plain, by="s", num_particles=256, method="ibis").to_frame()
    assert back["log_predictive"][2] == 0
    sums = back.groupby("s")["log_predictive"].cumsum()
    np.testing.assert_allclose(back["log_evidence"], sums, rtol=1e-6)
    # log N(1; 0, 2) twice: two components, prior and noise of variance one
    np.testing.assert_allclose(back["log_evidence"][0], 2 * (-0.5 * np.log(4 * np.pi) - 0.25), atol=0.1)


def test_dates_and_the_start_of_each_stream():
    hours = [3.0, 1.0, 3.0, 7.5]
    dates = [BEGIN + datetime.timedelta(hours=h) for h in hours]
    numbers = pd.DataFrame({"s": ["a", "b", "b", "a"], "t": hours, "y": [1.0, 2.0, 3.0, 4.0], "push": 0.0})
    dated = numbers.assign(t=dates)
    names = {"by": "s", **COLUMNS, **SMALL}
    expected = pfbr.run(Drift(), numbers, **names).particles
    found = pfbr.run(Drift(), dated, start=BEGIN, time_unit="h", **names)
    np.testing.assert_allclose(found.particles, expected, atol=1e-5)
    first = pfbr.run(Drift(), dated, start="first", time_unit="h", **names)
    later = numbers.assign(t=[0.0, 0.0, 2.0, 4.5])  # from the first time of each
    np.testing.assert_allclose(first.particles, pfbr.run(Drift(), later, **names).particles, atol=1e-5)
    for wrong, said in [
        ({}, "are dates: give `start`"),
        ({"start": BEGIN}, "time_unit"),
        ({"start": BEGIN + datetime.timedelta(hours=2), "time_unit": "h"}, "row 1: .* lies before the start"),
    ]:
        with pytest.raises(InputError, match=said):
            pfbr.run(Drift(), dated, **wrong, **names)


def test_what_does_not_fit_is_refused(frame):
    with pytest.raises(InputError, match="`time` names a column of a frame"):
        pfbr.run(MODEL, np.zeros((3, 2)), time="t")
    with pytest.raises(InputError, match="of a frame name the column"):
        pfbr.run(MODEL, frame, times=np.zeros(86))
    with pytest.raises(InputError, match="must have shape"):
        pfbr.run(MODEL, frame, observation=["y"], by="sensor")
    with pytest.raises(InputError, match="run the streams of a frame one by one"):
        pfbr.run(Drift(), frame, by="sensor", smooth=True, **COLUMNS)
    named = pd.DataFrame({"mean.x[0]": ["a"], "a": [0.0], "b": [0.0]})
    with pytest.raises(InputError, match=r"'mean.x.0.' is called as one of the results"):
        pfbr.run(MODEL, named, by="mean.x[0]", **SMALL).to_frame()


def test_a_row_without_a_posterior_is_named():
    class Broken(GaussianMean):
        def log_likelihood(self, x, observation):
            return jnp.where(observation[0] > 5, jnp.nan, 1.0) * super().log_likelihood(x, observation)

    frame = pd.DataFrame({"s": ["u", "v", "u"], "a": [0.0, 9.0, 0.0], "b": 0.0}, index=[10, 20, 30])
    with pytest.raises(LikelihoodError, match=r"row 1 \(index .*20.*\) \(stream 'v'\)"):
        pfbr.run(Broken(2), frame, by="s", **SMALL)
