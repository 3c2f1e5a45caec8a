"""The general map is learned step by step, goes on after a kill, and its file says how it was made."""

import dataclasses

import jax
import numpy as np
import pytest

from pfbr.errors import FileError, InputError
from pfbr.inference.adaptive import general
from pfbr.training.general.learn import learn
from pfbr.training.general.recipe import Recipe
from pfbr.training.problems.kinds import gaussian, wave

KINDS = (gaussian, wave)
SHORT = Recipe(minutes=0.3, dims=(1,), problems=50, num_particles=48, held=8, batch=4, judge_every=1)


def test_learning_goes_on_after_a_kill_and_says_how_it_went(tmp_path):
    def killed(text):
        if text.startswith("{'steps': 2"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learn(SHORT, tmp_path, kinds=KINDS, tell=killed)
    told: list[str] = []
    again = learn(SHORT, tmp_path, kinds=KINDS, resume=True, tell=told.append)
    assert told[0].startswith("2 steps, loss")  # the first one was on disk
    once_more = learn(SHORT, tmp_path, kinds=KINDS, resume=True, tell=lambda _: None)
    for a, b in zip(jax.tree.leaves(again.transport), jax.tree.leaves(once_more.transport), strict=True):
        np.testing.assert_array_equal(a, b)

    path = tmp_path / "general.pfbr"
    general.write(path, again.transport, again.document)
    assert path.stat().st_size < 1_000_000
    transport, document = general.read(path)
    for a, b in zip(jax.tree.leaves(again.transport), jax.tree.leaves(transport), strict=True):
        np.testing.assert_array_equal(a, b)
    assert document["kinds"] == ["gaussian", "wave"]
    assert document["history"][0]["steps"] == 0
    assert document["steps"] == document["history"][-1]["steps"] > 0
    with pytest.raises(FileError, match="another recipe"):
        learn(dataclasses.replace(SHORT, batch=5), tmp_path, kinds=KINDS, resume=True)


def test_what_is_shipped_is_small_and_says_how_it_was_learned(root):
    path = root / "src/pfbr/inference/adaptive/general.pfbr"
    document = general.read(path)[1]
    assert path.stat().st_size < 1_000_000
    assert document["recipe"]["minutes"] <= 120
    assert min(entry["lost"] for entry in document["history"]) < document["history"][0]["lost"]


def test_a_recipe_is_checked():
    with pytest.raises(InputError, match="held out"):
        Recipe(problems=10)
    with pytest.raises(InputError, match="dims"):
        Recipe(dims=(0,))
