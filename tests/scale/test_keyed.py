"""A keyed stream is a session whose state is bytes: the same answers in one go or in many, and twice the same bytes."""

import zlib

import numpy as np
import pytest

import pfbr
from pfbr.errors import FileError, InputError
from pfbr.inference import session_file
from pfbr.scale.absorbing import LENGTHS
from pfbr.scale.answers import Answers, plain
from pfbr.scale.keyed import Keyed, KeyedSettings, unwrapped, wrapped
from tests.scale.walk import Walk, rows

MODEL = Walk()
N = 16
ROWS = rows(1, 12, 0)
Y, T, U = ROWS["y"][:, None], ROWS["t"], ROWS["push"][:, None]
ANSWERS = Answers(MODEL, also=("possible",))


def keyed(**settings):
    return Keyed(MODEL, KeyedSettings(**{"method": "smc", "num_particles": N, "key": 3, **settings}), ANSWERS)


def through(one, parts, name="a", content=None, y=Y, t=T):
    """The answers of rows in parts, one after the other from bytes to bytes, and the last bytes."""
    told = []
    for part in parts:
        content, answers = one.update(name, content, y[part], t[part], U[part])
        told.append(answers)
    return content, {column: np.concatenate([answers[column] for answers in told]) for column in told[0]}


@pytest.fixture(scope="module")
def whole():
    return through(keyed(), [slice(0, 12)])


def test_it_is_the_stream_of_a_panel(whole):
    panel = pfbr.Panel(MODEL, 4, method="smc", key=3, num_particles=N, start=None, by_id=True)
    panel.update(Y[:1], ["b"], time=T[:1], inputs=U[:1])  # whoever else reports
    for row in range(12):
        one = panel.update(Y[row : row + 1], ["a"], time=T[row : row + 1], inputs=U[row : row + 1])
        np.testing.assert_allclose(whole[1]["mean_x_0"][row], one.mean()[0, 0], atol=1e-5)
        np.testing.assert_allclose(whole[1]["q95_x_0"][row], one.quantile(0.95)[0, 0], atol=1e-5)
    np.testing.assert_allclose(whole[1]["log_evidence"][-1], panel.log_evidence("a"), atol=1e-4)
    np.testing.assert_array_equal(whole[1]["stage"], np.arange(1, 13))
    assert [value for value in whole[1]["error"] if value is not None] == []


@pytest.mark.parametrize("size", [1, 5])
def test_in_parts_it_is_the_same(whole, size):
    parts = [slice(i, i + size) for i in range(0, 12, size)]
    content, told = through(keyed(), parts)
    for column in ("mean_x_0", "ess", "log_evidence", "possible"):
        np.testing.assert_allclose(told[column], whole[1][column], atol=1e-4)
    again, same = through(keyed(), parts)
    assert again == content  # a repeated batch gives the same bytes
    np.testing.assert_array_equal(same["mean_x_0"], told["mean_x_0"])


def test_a_bad_row_is_told_and_changes_nothing(whole):
    y, t, u = (np.insert(values, [3, 7], values[[3, 7]], axis=0) for values in (Y, T, U))
    y[3], y[8] = -99.0, np.inf  # impossible; no number
    _, told = keyed().update("a", None, y, t, u)
    assert "cannot happen" in told["error"][3]
    assert "infinite" in told["error"][8]
    assert np.isnan(told["mean_x_0"][[3, 8]]).all()
    fine = np.delete(np.arange(14), [3, 8])
    np.testing.assert_allclose(told["mean_x_0"][fine], whole[1]["mean_x_0"], atol=1e-5)
    np.testing.assert_array_equal(told["stage"][fine], np.arange(1, 13))
    assert told["stage"][3] == 0
    assert keyed().update("b", None, np.full((1, 1), np.inf), T[:1], U[:1])[0] is None  # it has not begun


def test_late_rows_are_put_in_their_place_as_far_as_undo_goes(whole):
    one = keyed(undo=3)
    content, _ = one.update("a", None, np.delete(Y[:9], 7, axis=0), np.delete(T[:9], 7), np.delete(U[:9], 7, axis=0))
    order = [7, 9, 10, 11]
    content, told = one.update("a", content, Y[order], T[order], U[order])
    np.testing.assert_allclose(told["mean_x_0"][1:], whole[1]["mean_x_0"][9:], atol=1e-5)
    assert told["error"][0] is None
    assert told["stage"].tolist() == [9, 10, 11, 12]
    content, told = one.update("a", content, Y[:1], T[:1] + 0.01, U[:1])
    assert "larger `undo`" in told["error"][0]
    _, told = keyed().update("a", through(keyed(), [slice(0, 9)])[0], Y[7:8], T[7:8], U[7:8])
    assert "none of its reports" in told["error"][0]


def test_bytes_of_another_version_or_model_are_refused(whole):
    content = whole[0]
    assert unwrapped(wrapped(b"x")) == b"x"
    with pytest.raises(FileError, match=r"version 7.*reads version 1"):
        unwrapped(content.replace(b"pfbr-keyed 1", b"pfbr-keyed 7"))
    with pytest.raises(FileError, match="damaged"):
        unwrapped(content[:-40])
    with pytest.raises(FileError, match="not what pfbr wrote"):
        unwrapped(b"something else")
    older = zlib.decompress(content.partition(b"\n")[2]).replace(b'"layout": ', b'"layout": 9')
    with pytest.raises(FileError):
        keyed().update("a", wrapped(older), Y[:1], T[:1] + 99, U[:1])

    class Other(Walk):
        def log_prior(self, x):
            return super().log_prior(x) * 2

    other = Keyed(Other(), KeyedSettings(method="smc", num_particles=N), Answers(Other()))
    with pytest.raises(InputError, match="log_prior"):
        other.update("a", content, Y[:1], T[:1] + 99, U[:1])


def test_what_streams_share_is_looked_at_once(monkeypatch, whole):
    """And does not depend on which of them came first."""
    looked = []
    monkeypatch.setattr(session_file, "check_model", lambda *given: looked.append(given))
    one = keyed()
    for name, begin in (("b", 3), ("a", 0)):
        held, _ = through(one, [slice(begin, 6), slice(6, 12)], name)
        if name == "a":
            assert held == through(keyed(), [slice(0, 6), slice(6, 12)])[0]
    assert len(looked) == 2  # once by each of the two that opened streams


@pytest.mark.slow
def test_state_stays_small_however_long_the_stream():
    """The default method keeps 256 rows at most; 16 particles of a mean in two dimensions."""
    sizes = {}
    model = pfbr.models.GaussianMean(2, observation_std=1.0)
    one = Keyed(model, KeyedSettings(num_particles=N, history=128), Answers(model))
    values, content = np.random.default_rng(1).normal(size=(320, 2)), None
    for begin in range(0, 320, LENGTHS[-1]):
        part = slice(begin, begin + LENGTHS[-1])
        content, told = one.update("a", content, values[part], np.arange(320.0)[part])
        sizes[begin + LENGTHS[-1]] = len(content)
    assert sizes[320] < 1.2 * sizes[128]
    np.testing.assert_allclose(told["mean_x_0"][-1], values[:, 0].sum() / (320 + 1), atol=0.02)


def test_names_are_those_of_the_unknowns():
    assert plain("mean.beta[0,1]") == "mean_beta_0_1"
    assert ANSWERS.numbers == ["mean_x_0", "std_x_0", "q5_x_0", "q50_x_0", "q95_x_0"]
    with pytest.raises(InputError, match="`also`"):
        Answers(MODEL, also=("luck",))
    with pytest.raises(InputError, match="quantiles"):
        Answers(MODEL, quantiles=(5.0,))
