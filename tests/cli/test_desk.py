"""Lines by stream and by number: a session each, no line counted twice, forecasts that change nothing."""

import json

import jax
import numpy as np
import pytest

import pfbr
from pfbr.cli.desk import Desk
from pfbr.cli.lines import Columns
from pfbr.errors import InputError
from pfbr.models import GaussianMean

MODEL = GaussianMean(2, observation_std=1.0)
SETTINGS = {"method": "gaussian", "num_particles": 16, "key": 4}


def asked(desk: Desk, line) -> dict:
    return desk.respond(line if isinstance(line, str) else json.dumps(line), "line 1")[0]


def test_streams_are_told_apart_by_id():
    desk = Desk(MODEL, SETTINGS)
    said = [
        asked(desk, {"id": "a", "observation": [0.4, 0.1]}),
        asked(desk, {"id": 7, "observation": [3.0, 2.0]}),
        asked(desk, [1.0, 1.0]),
        asked(desk, {"id": "a", "observation": [0.2, 0.3]}),
        asked(desk, {"id": "a", "retract": None}),
    ]
    assert [one.get("id") for one in said] == ["a", 7, None, "a", "a"]
    assert [one["stage"] for one in said] == [1, 1, 1, 2, 1]
    assert said[4]["mean"] == said[0]["mean"]
    key = jax.random.fold_in(jax.random.key(4), 1)
    own = pfbr.Session(MODEL, **(SETTINGS | {"key": key})).update([3.0, 2.0])
    np.testing.assert_allclose(said[1]["mean"], own.mean(), atol=1e-6)
    with pytest.raises(InputError):
        asked(desk, {"id": "new", "observation": [1.0]})
    assert list(desk.sessions) == ["a", 7, None]


def test_a_number_is_counted_once():
    desk = Desk(MODEL, SETTINGS)
    first = asked(desk, {"n": 3, "observation": [0.4, 0.1]})
    assert first["n"] == 3
    again, changed = desk.respond('{"n": 3, "observation": [0.4, 0.1]}', "line 2")
    assert not changed
    assert again == first | {"again": True}
    with pytest.raises(InputError):
        asked(desk, {"n": 5, "observation": [0.4]})
    assert asked(desk, {"n": 5, "observation": [0.4, 0.4]})["stage"] == 2  # a bad line has not used the number up
    assert asked(desk, {"n": 3, "observation": [0.4, 0.1]}) == {"n": 3, "highest": 5, "again": True}
    assert asked(desk, [0.1, 0.1])["stage"] == 3  # one without a number counts whenever it comes


def test_earlier_reports_are_taken_back_or_replaced():
    desk = Desk(MODEL, SETTINGS)
    rows = [[0.4, 0.1], [2.0, 2.0], [0.3, 0.2]]
    for row in rows:
        asked(desk, row)
    replaced = asked(desk, {"replace": [0.5, 0.5], "number": 2})
    right = Desk(MODEL, SETTINGS)
    for row in (rows[0], [0.5, 0.5], rows[2]):
        straight = asked(right, row)
    assert replaced["mean"] == straight["mean"]
    assert asked(desk, {"retract": None, "time": 3})["stage"] == 2
    with pytest.raises(InputError, match="number"):
        asked(desk, {"retract": None, "number": 9})


def test_a_forecast_changes_nothing():
    desk = Desk(MODEL, SETTINGS)
    asked(desk, {"n": 1, "observation": [0.4, 0.1]})
    ahead = asked(desk, {"n": 1, "predict": 2})
    assert ahead["stage"] == 1
    assert np.shape(ahead["forecast"]["observation"]["quantile"]) == (3, 2, 2)
    assert ahead["forecast"]["times"] == [2.0, 3.0]
    assert asked(desk, {"predict": [2.5, 4.0]})["forecast"]["times"] == [2.5, 4.0]
    assert asked(desk, {"n": 2, "observation": [0.4, 0.1]})["stage"] == 2


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"n": -1, "observation": [0, 0]}, '"n" must be a whole number'),
        ({"n": 1.5, "observation": [0, 0]}, '"n" must be a whole number'),
        ({"n": "x", "observation": [0, 0]}, '"n" must be a whole number'),
        ({"id": [1], "observation": [0, 0]}, '"id" must be'),
        ({"id": True, "observation": [0, 0]}, '"id" must be'),
        ({"retract": None, "number": "x"}, '"number" must be a whole number'),
        ({"predict": 0}, '"predict" must be'),
        ({"predict": "far"}, '"predict" must be'),
        ({"predict": 3, "inputs": [[1], [2], [3]]}, "inputs"),
        ({"id": "a"}, '"observation"'),
    ],
)
def test_a_bad_line_names_the_field_and_changes_nothing(line, message):
    desk = Desk(MODEL, SETTINGS)
    with pytest.raises(InputError, match=message):
        asked(desk, line)
    assert desk.sessions == {}
    assert desk.highest is None


def test_columns_may_be_called_n_or_id():
    desk = Desk(GaussianMean(1, observation_std=1.0), SETTINGS, Columns.of(None, None, "n"))
    assert asked(desk, {"n": 0.5, "id": "x"})["id"] == "x"
    assert desk.highest is None
