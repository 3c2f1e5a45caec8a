"""A restored session goes on bit for bit; another model, a damaged file, a method without a description are refused."""

import hashlib
import json

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import pfbr
from pfbr import baselines
from pfbr.errors import FileError, InputError
from pfbr.inference import session_file
from pfbr.io import containers
from pfbr.models import GaussianMean, GaussianMixture, LinearDynamics

MODEL = GaussianMean(2, observation_std=1.0)
SYSTEM = LinearDynamics([[0.9, 0.2], [-0.1, 0.8]], [[1.0, 0.0], [0.3, 0.7]])
STREAM = np.array([[0.4, -1.2], [0.9, 0.1], [-0.3, 0.8], [1.4, -0.2], [0.1, 0.1]], np.float32)


class Drift(pfbr.StateSpaceModel):
    """A level with an unknown speed, pushed by its inputs, seen at irregular times, now and then in part."""

    dim: int = 2

    def sample_prior(self, key):
        return jax.random.normal(key, (2,))

    def log_prior(self, x):
        return jnp.sum(jax.scipy.stats.norm.logpdf(x))

    def sample_transition(self, key, x, *, dt, inputs):
        return x + inputs["push"] * dt + jnp.sqrt(dt) * jax.random.normal(key, (2,))

    def log_likelihood(self, x, observation):
        return jax.scipy.stats.norm.logpdf(observation, x, 0.5)


CASES = {
    "auto, static": (MODEL, "auto"),
    "auto, a filter": (SYSTEM, "auto"),
    "gaussian": (MODEL, "gaussian"),
    "smc": (SYSTEM, "smc"),
    "exact": (MODEL, "exact"),
    "svgd": (MODEL, baselines.SVGD(steps=2, capacity=8)),
}


def session_of(model=MODEL, method="gaussian", **settings):
    return pfbr.Session(model, **{"method": method, "num_particles": 16, "history": 8, **settings})


def again(session, model, **how):
    return pfbr.Session.from_bytes(session.to_bytes(**how), model)


def equal(a, b) -> None:
    assert a.stage == b.stage
    assert a.log_evidence == b.log_evidence
    for one, other in zip(jax.tree.leaves(a._state), jax.tree.leaves(b._state), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


@pytest.mark.parametrize("name", CASES)
def test_it_goes_on_bit_for_bit(name, tmp_path):
    model, method = CASES[name]
    session = session_of(model, method, key=3)
    for row in STREAM[:3]:
        session.update(row)
    session.save(tmp_path / "s.pfbr")
    restored = pfbr.Session.restore(tmp_path / "s.pfbr", model)
    equal(restored, session)
    for row in STREAM[3:]:
        a, b = session.update(row), restored.update(row)
        np.testing.assert_array_equal(a.particles, b.particles)
        assert repr(a.info) == repr(b.info)
    equal(restored, session)
    for _ in range(5):  # past what was there when it was saved
        session.retract()
        restored.retract()
        equal(restored, session)
    with pytest.raises(InputError, match="nothing to retract"):
        restored.retract()
    assert restored.to_bytes() == session.to_bytes()


class Level(pfbr.StateSpaceModel):
    """A walk whose noise is unknown."""

    dim: int = 1

    def sample_prior(self, key):
        return jax.random.normal(key, (1,))

    def log_prior(self, x):
        return jax.scipy.stats.norm.logpdf(x[0])

    def sample_parameters(self, key):
        return {"noise": jax.random.exponential(key)}

    def log_parameters(self, params):
        return -params["noise"]

    def sample_transition(self, key, x, *, params):
        return x + params["noise"] * jax.random.normal(key, (1,))

    def log_likelihood(self, x, observation):
        return jax.scipy.stats.norm.logpdf(observation[0], x[0], 0.5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "method"),
    [
        (GaussianMixture(), "mixture"),
        (GaussianMixture(), "auto"),
        (GaussianMixture(), "collocation"),
        (Level(), "auto"),
    ],
    ids=["a trained operator", "auto", "collocation", "nested"],
)
def test_methods_that_take_long_to_compile_go_on_bit_for_bit_too(model, method):
    session = session_of(model, method, num_particles=64)
    rows = np.random.default_rng(2).normal(size=(8, 1))
    for row in rows[:4]:
        session.update(row)
    restored = again(session, model)
    for row in rows[4:]:
        session.update(row)
        restored.update(row)
        equal(restored, session)


def test_times_inputs_and_gaps_are_remembered():
    model = Drift()
    session = session_of(model, "smc", start="2024-03-01", time_unit="D")
    with pytest.raises(InputError, match="`inputs`"):
        session.update([0.1, 0.2], time="2024-03-02")
    session.update([0.1, None], time="2024-03-02T12:00", inputs={"push": 1.0})
    restored = again(session, model)
    for one in (session, restored):
        one.update([0.4, 0.3], time="2024-03-04", inputs={"push": 0.5})
        with pytest.raises(InputError, match="inputs"):
            one.update([0.4, 0.3], time="2024-03-05", inputs={"pull": 0.5})
        with pytest.raises(InputError, match="observation"):
            one.update([0.4], time="2024-03-05", inputs={"push": 0.5})
        with pytest.raises(InputError, match="before"):
            one.update([0.4, 0.3], time="2024-02-28", inputs={"push": 0.5})
        one.update([0.2, 0.1], time="2024-03-02", inputs={"push": 0.1})  # late: the reports themselves are in the file
        one.replace([0.3, None], number=2)
        assert one.stage == 3
    equal(restored, session)


def test_before_the_first_observation_there_is_nothing_but_settings():
    session = session_of(key=jax.random.PRNGKey(7))
    restored = again(session, MODEL)
    assert restored.stage == 0
    session.update(STREAM[0])
    restored.update(STREAM[0])
    equal(restored, session)


def test_past_states_can_be_left_out():
    session = session_of()
    for row in STREAM:
        session.update(row)
    slim = again(session, MODEL, undo=False)
    equal(slim, session)
    with pytest.raises(InputError, match="nothing to retract"):
        slim.retract()
    assert len(session.to_bytes(undo=False)) < len(session.to_bytes())
    slim.update(STREAM[0])
    slim.retract()  # from here on it keeps them again
    equal(slim, session)


def test_an_empty_past_takes_no_room():
    small, large = (session_of(method="auto", history=history) for history in (128, 4096))
    for session in (small, large):
        for row in STREAM:
            session.update(row)
    assert len(large.to_bytes()) < 1.1 * len(small.to_bytes()) < 50_000


def test_another_model_is_refused_with_what_differs():
    session = session_of()
    session.update(STREAM[0])
    with pytest.raises(InputError, match=r"a GaussianMean.*`log_likelihood` is"):
        again(session, GaussianMean(2, observation_std=1.01))
    with pytest.raises(InputError, match="3 unknowns where the other had 2"):
        again(session, GaussianMean(3, observation_std=1.0))


def claiming(data: bytes, **header) -> bytes:
    """The same file with another header, and a checksum that is right."""
    line, numbers = data.split(b"\n", 2)[1:]
    body = json.dumps(json.loads(line) | header).encode() + b"\n" + numbers
    return b"pfbr-session 2 " + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def test_a_file_that_is_not_whole_or_not_ours_is_refused(tmp_path):
    session = session_of()
    session.update(STREAM[0])
    data = session.to_bytes()
    flipped = data[:-9] + bytes([data[-9] ^ 1]) + data[-8:]
    for wrong in (data[:-1], data[:50], b"", data.replace(b"session", b"operator", 1), flipped):
        with pytest.raises(FileError):
            pfbr.Session.from_bytes(wrong, MODEL)
    with pytest.raises(FileError, match="no file"):
        pfbr.Session.restore(tmp_path / "none", MODEL)
    with pytest.raises(InputError, match="bytes"):
        pfbr.Session.from_bytes("text", MODEL)
    for header, message in [
        ({"layout": 99, "pfbr": "9.9"}, "saved by pfbr 9.9 in layout 99"),
        ({"precision": "float64"}, "float64.*jax_enable_x64"),
        ({"method": {"kind": "Unheard", "settings": {}}}, "'Unheard'"),
        ({"method": {"kind": "Adaptive", "settings": {"hue": 1}}}, "'hue'"),
        ({"method": {"kind": "Adaptive", "settings": {}}}, "keeps other arrays"),
        ({"method": 3}, "method"),
        ({"num_particles": 17}, "keeps other arrays"),
        ({"num_particles": "many"}, "must be a whole number"),
        ({"stages": [1, 2, 3]}, "cannot read|other arrays"),
        ({"fingerprint": None}, "`fingerprint` must be a table"),
    ]:
        with pytest.raises(FileError, match=message):
            pfbr.Session.from_bytes(claiming(data, **header), MODEL)


def test_there_is_nothing_to_run_in_a_file():
    session = session_of()
    session.update(STREAM[0])
    header, arrays = containers.from_bytes(session.to_bytes(), "session")
    json.dumps(header)
    assert all(array.dtype.kind in "fiub" for array in arrays.values())
    assert header["pfbr"] == pfbr.__version__
    assert header["layout"] == session_file.LAYOUT
