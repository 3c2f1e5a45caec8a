"""The better setting wins, and one that explodes is never taken."""

import jax
import pytest

from pfbr import baselines
from pfbr.errors import InputError
from tests.baselines.streams import STILL


def test_it_prefers_the_better_setting():
    """A step so small that nothing is learnt loses against a sensible one; one that explodes is never taken."""
    candidates = [baselines.SGLD(step_size=s, steps=10) for s in (1e-4, 0.2, 1e4)]
    tuned = baselines.tune(jax.random.key(0), candidates, STILL, num_particles=64, length=5, num_tasks=16)
    assert tuned.method is candidates[1]
    assert tuned.scores[1] < tuned.scores[0] < tuned.scores[2]


def test_nothing_to_choose_from_is_refused():
    with pytest.raises(InputError, match="at least one"):
        baselines.tune(jax.random.key(0), [], STILL)
