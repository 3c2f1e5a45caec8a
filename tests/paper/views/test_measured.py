"""Numbers, bold faces and sentences that the pages say."""

import numpy as np

from pfbr.io.records import Measurement
from pfbr.paper.views.measured import Measured, best_rows, cell, number, standing


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


def test_a_baseline_that_wins_is_named():
    def said(**others):
        everyone = measured(pfbr=(0.0, 0.01), **others)
        (finding,) = standing(everyone, "m", "pfbr", [*others], 256, where="Here", unit="nats")
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
    broken = standing(measured(pfbr=(np.inf, np.nan)), "m", "pfbr", ["smc"], 256, where="Here", unit="nats")
    assert broken[0].good is False


def test_bold_is_the_best_and_what_lies_within_its_noise():
    column = [Measurement("a", "m", None, v, e) for v, e in ((0.0, 0.1), (0.2, 0.1), (0.5, 0.1), (5.0, 9.0), (-1, 0.1))]
    assert best_rows(column, [True, True, True, True, False]) == {0, 1}  # large errors earn nothing
