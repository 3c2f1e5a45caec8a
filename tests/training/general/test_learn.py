"""The general operator is learned in rounds, goes on after a kill, and its file says how it was made."""

import dataclasses

import jax
import numpy as np
import pytest

import pfbr
from pfbr.errors import FileError, InputError
from pfbr.flow.velocities import EquivariantVelocity
from pfbr.training.general.learn import learn
from pfbr.training.general.recipe import Recipe
from pfbr.training.problems.kinds import gaussian, wave

KINDS = (gaussian, wave)
SHORT = Recipe(
    minutes=0.02,
    dims=(1,),
    problems=50,
    num_particles=48,
    points=8,
    rounds=2,
    rolled_problems=10,
    held=8,
    batch=8,
    steps=2,
)


def test_learning_goes_on_after_a_kill_and_says_how_it_went(tmp_path):
    def killed(text):
        if text.startswith("{'round': 1"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learn(SHORT, tmp_path, kinds=KINDS, tell=killed)
    told: list[str] = []
    one = learn(SHORT, tmp_path, kinds=KINDS, resume=True, tell=told.append)
    assert [text[:12] for text in told] == ["{'round': 1,", "round 2 of 2", "{'round': 2,"]
    # the round that ended last is on disk: nothing of it is done again
    again: list[str] = []
    other = learn(SHORT, tmp_path, kinds=KINDS, resume=True, tell=again.append)
    assert again == []
    for a, b in zip(jax.tree.leaves(one.velocity), jax.tree.leaves(other.velocity), strict=True):
        np.testing.assert_array_equal(a, b)
    assert isinstance(one.velocity, EquivariantVelocity)

    path = tmp_path / "any.pfbr"
    pfbr.save(path, one)
    assert path.stat().st_size < 1_000_000
    document = pfbr.load(path).provenance.document
    assert document["settings"]["rounds"] == 2
    assert [entry["round"] for entry in document["history"]] == [0, 1, 2]
    assert document["steps"] >= 40
    with pytest.raises(FileError, match="another recipe"):
        learn(dataclasses.replace(SHORT, batch=9), tmp_path, kinds=KINDS, resume=True)


def test_a_recipe_is_checked():
    with pytest.raises(InputError, match="held out"):
        Recipe(problems=10)
    with pytest.raises(InputError, match="dims"):
        Recipe(dims=(0,))
