"""How a flow is solved is checked where it is set."""

import pytest

from pfbr.errors import InputError
from pfbr.flow import settings, solve


def test_every_solver_that_can_be_named_is_there():
    assert tuple(solve.SOLVERS) == settings.SOLVERS


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"solver": "euler"}, "one of midpoint.*closed-form, map; got 'euler'"),
        ({"steps": 2.0}, "`steps` must be a whole number"),
        ({"steps": 10**9}, "at most 100000"),
        ({"tolerance": 0.0}, "`tolerance` must be above 0"),
        ({"gradient": "none"}, "`gradient`"),
        ({"solver": "closed-form", "tolerance": 0.1}, "equal steps"),
    ],
)
def test_what_cannot_be_solved_is_refused(given, word):
    with pytest.raises(InputError, match=word):
        settings.FlowSettings(**given)
