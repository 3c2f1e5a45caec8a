"""Trees of plain containers come back as they were; anything else is refused by name."""

import json

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr.errors import FileError, InputError
from pfbr.io.trees import described, rebuilt

TREE = {
    "push": np.array([1.0, np.nan], np.float32),
    "pair": (np.float64(2.5), [jnp.arange(3), None]),
    "inf": float("-inf"),
    "n": 3,
    "name": "ä",
    "yes": True,
}


def test_a_tree_comes_back():
    arrays: dict = {}
    document = json.loads(json.dumps(described(TREE, "inputs", arrays)))
    again = rebuilt(document, arrays, "it")
    assert jax.tree.structure(again) == jax.tree.structure(TREE)
    for a, b in zip(jax.tree.leaves(again), jax.tree.leaves(TREE), strict=True):
        np.testing.assert_array_equal(a, b)
        assert np.asarray(a).dtype == np.asarray(b).dtype
    assert set(arrays) == {"inputs.push", "inputs.pair.0", "inputs.pair.1.0", "inputs.inf"}
    assert isinstance(again["pair"], tuple)
    assert type(again["inf"]) is float


@pytest.mark.parametrize("tree", [{1: 2.0}, {"a": {"b": object()}}, {"a": {2.0, 3.0}}])
def test_what_no_file_can_hold_is_refused_by_name(tree):
    with pytest.raises(InputError, match="`inputs"):
        described(tree, "inputs", {})


@pytest.mark.parametrize("document", [{"array": "nowhere"}, {"set": []}, {"dict": []}, {}, 2.5, [1]])
def test_a_foreign_description_is_refused(document):
    with pytest.raises(FileError, match="the/file"):
        rebuilt(document, {}, "the/file")
