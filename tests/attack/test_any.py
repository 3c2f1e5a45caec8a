"""Whatever comes, by hypothesis: it is taken in, or refused with an error of ours, and then nothing has changed."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pfbr
from pfbr.errors import FileError, PfbrError
from pfbr.models import GaussianMean
from tests.attack.session_files import MODEL, whole

# Few of them compile anything: the method that ignores its observations is the one that is looked at least.
QUICK = {"method": "prior", "num_particles": 8}
NUMBERS = st.floats(width=32) | st.integers(-(10**30), 10**30) | st.booleans() | st.none()
ODD = NUMBERS | st.text(max_size=5) | st.binary(max_size=5) | st.complex_numbers() | st.just(object())
ANYTHING = st.recursive(ODD, lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner), max_leaves=6)
PAIRS = st.lists(st.floats(-1e3, 1e3, width=32), min_size=2, max_size=2)
TIMES = st.none() | NUMBERS | st.datetimes() | st.text(max_size=8)
IDS = st.integers(0, 3) | st.sampled_from(["a", "b", ("a", 1), None, 2.5])


@pytest.fixture(scope="module")
def session() -> pfbr.Session:
    return pfbr.Session(GaussianMean(2), **QUICK)


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(st.one_of(PAIRS, ANYTHING), TIMES)
def test_a_session_takes_a_report_or_stays_as_it_was(session, observation, time):
    before = session.stage, session.log_evidence, session.to_bytes()
    try:
        session.update(observation, time=time)
    except PfbrError as error:
        assert "\n" not in str(error)
        assert (session.stage, session.log_evidence, session.to_bytes()) == before
    else:
        assert session.stage == before[0] + 1


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(IDS, st.one_of(PAIRS, PAIRS, ANYTHING)), max_size=3))
def test_a_panel_takes_each_report_or_says_why(reports):
    panel = pfbr.Panel(GaussianMean(2), 8, **QUICK)
    panel.update([[0.1, 0.2]], ["a"])
    before = panel.stage("a")
    try:
        after = panel.update([observation for _, observation in reports], [name for name, _ in reports])
    except PfbrError as error:
        assert "\n" not in str(error)
        assert panel.stage("a") == before
        return
    taken = [status != "refused" for status in after.status]
    assert len(taken) == len(reports)
    mine = [one for one, (name, _) in zip(taken, reports, strict=True) if name == "a"]
    assert panel.stage("a") == before + sum(mine)


@settings(max_examples=100)
@given(st.sampled_from(["session", "panel"]), st.data())
def test_a_file_with_any_byte_changed_is_refused(kind, data):
    content = bytearray(whole(kind))
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    cls = pfbr.Panel if kind == "panel" else pfbr.Session
    with pytest.raises(FileError):
        cls.from_bytes(bytes(content), MODEL)


@settings(max_examples=50)
@given(st.binary(max_size=300))
def test_any_bytes_are_no_session(content):
    with pytest.raises(FileError):
        pfbr.Session.from_bytes(content, MODEL)
