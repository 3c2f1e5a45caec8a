"""The frontier of error against time."""

from pfbr.paper.views.table1 import frontier


def test_the_frontier_holds_what_nothing_faster_beats():
    spots = [("a", 1, 1.0, 5.0), ("b", 1, 2.0, 6.0), ("c", 1, 3.0, 4.0), ("d", 1, 3.0, 4.5), ("e", 1, 9.0, 1.0)]
    assert [spot[0] for spot in frontier(spots[::-1])] == ["a", "c", "e"]
