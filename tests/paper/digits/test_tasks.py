"""What is tested on: angles of its own, and no image twice."""

import functools

import numpy as np
import pytest

from pfbr.errors import InputError
from pfbr.paper.digits import tasks
from pfbr.paper.digits.tasks import unseen_angles, unseen_streams


def test_test_tasks_have_their_own_angles_and_no_image_twice(monkeypatch):
    monkeypatch.setattr(tasks, "unseen_images", functools.cache(tasks.unseen_images))  # deformed once
    assert np.allclose(unseen_angles(10), np.arange(-13.5, 14, 3))
    streams, fresh = unseen_streams(0, 2, 3)
    assert streams.shape == (2, 3, 32, 52)
    assert fresh.shape == (2, 1932, 52)
    assert len(np.unique(np.asarray(streams[0]).reshape(96, 52), axis=0)) == 96
    again, _ = unseen_streams(0, 1, 3)
    assert not np.array_equal(again[0], streams[0])  # with one task the angle is another one
    assert np.array_equal(again[0][..., 2:], streams[0][..., 2:])
    other, _ = unseen_streams(1, 1, 3)
    assert not np.array_equal(other[0][..., 2:], streams[0][..., 2:])
    with pytest.raises(InputError, match="1932"):
        unseen_streams(0, 1, 61)
