"""Names and weighted summaries of every number; what is chosen by name; times as an axis understands them."""

import datetime
from statistics import NormalDist

import numpy as np
import pytest

from pfbr.errors import InputError
from pfbr.inference.display.columns import Column, chosen, clock_words, columns, density_curve, limits, time_coordinate
from pfbr.inference.draws import Draws

WEIGHTS = np.array([0.5, 0.25, 0.25])
DRAWS = Draws({"beta": np.array([[0.0, 1.0], [4.0, 1.0], [8.0, 5.0]]), "sigma": np.array([1.0, 2.0, 4.0])}, WEIGHTS)


def test_every_number_has_a_name_and_its_weighted_mean():
    found = columns(DRAWS, "x")
    assert [one.name for one in found] == ["beta[0]", "beta[1]", "sigma"]
    assert [float(one.mean) for one in found] == [3.0, 2.0, 2.0]


def test_a_plain_vector_is_numbered_unless_it_has_one_element():
    assert [one.name for one in columns(Draws(np.zeros((3, 2)), WEIGHTS), "x")] == ["x[0]", "x[1]"]
    assert [one.name for one in columns(Draws(np.zeros((3, 1)), WEIGHTS), "x")] == ["x"]


def test_quantiles_and_spreads_are_those_of_the_draws():
    levels, spreads = DRAWS.quantile([0.05, 0.5, 0.95]), DRAWS.std()
    wanted = [(levels["beta"][:, 0], spreads["beta"][0]), (levels["beta"][:, 1], spreads["beta"][1])]
    for one, (quantiles, spread) in zip(
        columns(DRAWS, "x"), [*wanted, (levels["sigma"], spreads["sigma"])], strict=True
    ):
        assert np.allclose(one.quantile([0.05, 0.5, 0.95]), quantiles)
        assert np.allclose(one.std, spread)


def test_some_are_chosen_by_name_and_a_base_name_means_all_its_elements():
    found = columns(DRAWS, "x")
    assert [one.name for one in chosen(found, ["sigma", "beta"], 12)] == ["sigma", "beta[0]", "beta[1]"]
    assert [one.name for one in chosen(found, "beta[1]", 12)] == ["beta[1]"]
    assert [one.name for one in chosen(found, None, 2)] == ["beta[0]", "beta[1]"]
    with pytest.raises(InputError, match=r"nothing called .gamma.*beta\[0\], beta\[1\], sigma"):
        chosen(found, ["gamma"], 12)


def test_times_become_numbers_or_moments_in_universal_time():
    assert time_coordinate(None) is None
    assert time_coordinate([0.5, 2.0]).tolist() == [0.5, 2.0]
    east = datetime.timezone(datetime.timedelta(hours=2))
    moments = time_coordinate(["2024-05-01", datetime.datetime(2024, 5, 1, 2, tzinfo=east)])
    assert moments[0] == moments[1] == np.datetime64("2024-05-01")


def test_readers_see_days_or_moments():
    assert clock_words(np.array(["2024-05-01", "2024-05-02"], "M8[us]")) == ["2024-05-01", "2024-05-02"]
    assert clock_words(np.array(["2024-05-01T12:30"], "M8[us]")) == ["2024-05-01 12:30:00"]
    assert clock_words(np.array([1.0, 2.5])) == ["1", "2.5"]


def test_names_stand_in_the_order_that_a_model_declares():
    assert [one.name for one in columns(DRAWS, "x", ("sigma", "beta"))] == ["sigma", "beta[0]", "beta[1]"]


def test_a_density_is_that_of_its_draws():
    normal = np.array([NormalDist().inv_cdf((i + 0.5) / 400) for i in range(400)])
    at, height = density_curve(Column("x", normal, np.full(400, 1 / 400)))
    assert np.allclose(height, np.exp(-0.5 * at**2), atol=0.05)
    assert len(density_curve(Column("x", np.ones(3), WEIGHTS))[0]) == 0


def test_a_wide_beginning_does_not_hide_what_came_after():
    width = np.array([50.0, 20.0, 3.0, *np.ones(20)])
    assert limits(-width, width) == (-2.0, 2.0)
    assert limits(-np.ones(20), np.ones(20)) is None
