"""A step that takes too long goes on beside the next reports, flagged meanwhile; in the end nothing differs."""

import threading
import warnings

import numpy as np
import pytest

import pfbr
from pfbr.errors import InputError, LikelihoodError
from pfbr.inference.in_time import InTime
from pfbr.inference.info import Info
from pfbr.inference.replay import Position, Report
from pfbr.models import GaussianMixture

START = Position(0, 0, 0.0, 0.0)


class Adding:
    """Whole steps add ten times a report, and wait until they may; weighing adds it once. Five and more are refused."""

    def __init__(self, enough=False):
        self.may, self.enough = threading.Event(), enough

    def step(self, here, report):
        self.may.wait(10)
        if report.row >= 5:
            raise LikelihoodError(f"{report.row} cannot happen")
        return Position(here.state + 10 * report.row, here.stage + 1, report.at, 0.0), Info()

    def weigh(self, here, report):
        if report.row == 4:  # weights that are none
            return None
        return Position(here.state + report.row, here.stage + 1, report.at, 0.0), Info(), self.enough


def reports(*values):
    return [Report(value, float(at), True) for at, value in enumerate(values, 1)]


def through(stream, given, kept=(), here=START):
    replayed = None
    for report in given:
        replayed, refused = stream.update(kept, here, report)
        assert refused is None
        kept, here = replayed.kept, replayed.end
    return replayed


def test_what_is_enough_is_the_answer():
    adding = Adding(enough=True)
    stream = InTime(1e-3, adding.step, adding.weigh, 8)
    done = through(stream, reports(1, 2))
    assert (done.end.state, done.end.stage, len(done.kept)) == (3, 2, 2)
    assert done.info.flagged is None
    assert stream.settled() is None


def test_what_is_late_is_weighed_and_flagged_until_it_is_done():
    adding = Adding()
    stream = InTime(1e-3, adding.step, adding.weigh, 2)
    meanwhile = through(stream, reports(1, 2, 4, 3))
    assert meanwhile.end.state == 1 + 2 + 3  # where weights would be none all stays
    assert meanwhile.end.stage == 4
    assert bool(meanwhile.info.flagged)
    assert int(meanwhile.info.details["pending"]) == stream.num_pending == 4
    adding.may.set()
    done = stream.settled()
    assert (done.end.state, done.end.stage) == (100, 4)
    assert [kept.before.state for kept in done.kept] == [30, 70]  # two can be undone, from whole states
    assert stream.num_pending == 0
    assert through(InTime(10.0, adding.step, adding.weigh, 8), reports(1)).end.state == 10  # in time


def test_a_report_is_refused_at_once_or_told_afterwards():
    adding = Adding()
    stream = InTime(1e-3, adding.step, adding.weigh, 8)
    meanwhile = through(stream, reports(1, 6, 2))
    adding.may.set()
    stream.seconds = 10.0
    with pytest.warns(UserWarning, match="6 cannot happen"):
        done, refused = stream.update(meanwhile.kept, meanwhile.end, Report(7, 9.0, True))
    assert "7 cannot happen" in str(refused)
    assert (done.end.state, done.end.stage, done.end.now) == (30, 2, 3.0)  # without both


def test_a_session_that_has_caught_up_stands_where_it_would_stand():
    model, stream = GaussianMixture(), np.array([[3.0], [-2.0], [4.0], [0.5], [2.0]])
    without = pfbr.Session(model, num_particles=32)
    hurried = pfbr.Session(model, num_particles=32, max_ms=1e-3)
    flags = []
    for row in stream:
        truth = without.update(row)
        told = hurried.update(row)
        flags.append(bool(told.info.flagged))
        assert hurried.stage == without.stage
    assert any(flags)
    settled = hurried.settle()
    np.testing.assert_array_equal(settled.particles, truth.particles)
    np.testing.assert_array_equal(settled.weights, truth.weights)
    assert hurried.log_evidence == without.log_evidence
    hurried.update(stream[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        restored = pfbr.Session.from_bytes(hurried.to_bytes(), model)  # what is pending is waited for
    np.testing.assert_array_equal(restored.posterior.particles, without.update(stream[0]).particles)


@pytest.mark.parametrize("wrong", [0, -1.0, np.nan, np.inf, "5", True])
def test_what_is_no_limit_is_refused(wrong):
    with pytest.raises(InputError, match="max_ms"):
        pfbr.Session(GaussianMixture(), max_ms=wrong)


def test_a_method_that_cannot_weigh_first_has_no_limit():
    with pytest.raises(InputError, match="weigh first"):
        pfbr.Session(GaussianMixture(), method="ibis", max_ms=5)
    with pytest.raises(InputError, match="scores"):
        pfbr.Session(GaussianMixture(), scores=True, max_ms=5)
