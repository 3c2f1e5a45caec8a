"""Sentences about ranks: which stages failed, how unlikely that is, and what to do."""

import numpy as np
import pytest

from pfbr.judging.calibration.calibrate import CalibrationSettings, conclude


def said(failing: dict[int, float], *, streams: int = 200, length: int = 25, broken: tuple[int, int] | None = None):
    """The verdict on ranks that are as even as can be, but for stages with ranks pressed to their middle."""
    even = np.broadcast_to(((np.arange(streams) + 0.5) / streams)[:, None, None], (streams, length, 3)).copy()
    for stage, factor in failing.items():
        even[:, stage - 1, 0] = 0.5 + factor * (even[:, stage - 1, 0] - 0.5)
    whole = np.ones((streams, length), bool)
    if broken is not None:
        whole[: broken[0], broken[1] - 1 :] = False
    return conclude(even, whole, CalibrationSettings(streams=streams, length=length))


@pytest.mark.parametrize(
    ("failing", "words"),
    [
        ({}, "Trust this method on streams like these: at each of 25 stages"),
        ({7: 0.5, 8: 0.5}, "not trust this method at observations 7 and 8 of 25:"),
        ({3: 0.5}, "not trust this method at observation 3 of 25:"),
        (dict.fromkeys(range(3, 26), 0.5), "not trust this method from observation 3 on:"),
        (dict.fromkeys(range(1, 26), 0.5), "not trust this method from the first observation on:"),
        (dict.fromkeys(range(2, 21), 0.5), "not trust this method at 19 of 25 observations, the first of them 2:"),
    ],
)
def test_the_sentence_names_the_stages_that_failed_and_no_others(failing, words):
    record = said(failing)
    assert words in record.verdict
    assert record.settings["failed_stages"] == list(failing)
    assert record.trusted is not bool(failing)
    if failing:
        assert "less than once in a billion times" in record.verdict
        assert record.settings["failed"] == {"x1": len(failing)}
        assert record.settings["advice"].startswith("This is no accident.")


def test_a_borderline_case_is_called_one_and_may_be_repeated():
    """The factor is searched for: the first that refuses, coming from what is even."""
    record = next(r for r in (said({5: f}) for f in np.arange(1, 0.5, -0.005)) if not r.trusted)
    p = record.settings["p_value"]
    assert 0.001 < p <= 0.05
    times = float(record.verdict.split("at most once in ")[1].split(" times")[0].replace(",", ""))
    assert times == pytest.approx(1 / p, rel=0.05)
    assert "one in 20 is refused" in record.settings["advice"]
    assert "--streams 800" in record.settings["advice"]


def test_particles_that_are_not_finite_are_said_and_not_ranked():
    record = said({}, broken=(3, 4))
    assert "from observation 4 on: in 3 of 200 streams its particles were no longer finite" in record.verdict
    assert np.isnan(record.arrays["ranks"][:3, 3:]).all()
    assert np.isfinite(record.arrays["ranks"][3:]).all()
    assert record.settings["p_value"] == 0
    assert not record.trusted


def test_a_bare_operator_is_advised_to_be_corrected_and_another_method_to_have_more_particles():
    ranks = np.full((200, 3, 2), 0.99)
    for bare, words in ((True, "--method auto"), (False, "more --particles")):
        record = conclude(ranks, np.ones((200, 3), bool), CalibrationSettings(length=3), bare=bare)
        assert words in record.settings["advice"]
