"""An operator survives the disk bit for bit; a file that is not whole, or not ours, is refused with a reason."""

import dataclasses
import json

import equinox as eqx
import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import numpy as jnp

import pfbr
from pfbr.errors import FileError, InputError, PfbrError
from pfbr.inference.architectures import NAMES, choose, to_json
from pfbr.inference.provenance import Provenance
from pfbr.io import containers
from pfbr.models import GaussianMean, MiniBatch
from tests.weights import operator_of

MODEL = GaussianMean(2)
SETTINGS = {
    "paper": {"width": 5, "steps": 1},
    "residual": {"width": 5, "num_features": 3, "steps": 2},
    "informed": {"width": 5, "steps": 1},
    "general": {"untrained": True},
}


def told(name):
    """An operator with weights of its own and a story, as `fit` returns one."""
    model = MiniBatch(MODEL, 3) if name == "informed" else MODEL
    design = to_json(choose(name, model, **SETTINGS[name]))
    document = {
        "architecture": design,
        "version": pfbr.__version__,
        "validation_score": 0.25,
        "history": [{"step": 0, "score": 1.0}, {"step": 50, "score": None}],
    }
    return dataclasses.replace(operator_of(3, name, model, **SETTINGS[name]), provenance=Provenance(document))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The paper's operator, where it is, and what its file holds."""
    path, operator = tmp_path_factory.mktemp("operators") / "paper.pfbr", told("paper")
    pfbr.save(path, operator)
    return path, operator, path.read_bytes()


@pytest.mark.parametrize("name", SETTINGS)
def test_an_operator_comes_back_as_it_was(name, tmp_path):
    operator = told(name)
    pfbr.save(tmp_path / "one.pfbr", operator)
    loaded = pfbr.load(tmp_path / "one.pfbr")
    assert eqx.tree_equal(loaded, operator)
    assert loaded.provenance.document == operator.provenance.document
    pfbr.save(tmp_path / "two.pfbr", loaded)
    assert (tmp_path / "two.pfbr").read_bytes() == (tmp_path / "one.pfbr").read_bytes()


def test_what_was_loaded_updates_as_what_was_saved(saved):
    path, operator, _ = saved
    observations = np.random.default_rng(0).normal(size=(3, 2))
    one, two = (pfbr.run(MODEL, observations, method=o, num_particles=8) for o in (operator, pfbr.load(path)))
    np.testing.assert_array_equal(one.particles, two.particles)
    by_name = pfbr.run(MODEL, observations, method=str(path), num_particles=8)
    np.testing.assert_array_equal(one.particles, by_name.particles)


def test_two_lines_say_how_it_was_made(saved):
    path, operator, content = saved
    first, second, *_ = content.split(b"\n")
    assert first.startswith(b"pfbr-operator 2 ")
    header = json.loads(second)
    names = [entry["name"] for entry in header.pop("arrays")]
    assert ".velocity.layers[0].from_input" in names
    assert header == operator.provenance.document == pfbr.read_header(path)


def refused(path, content, match=None):
    path.write_bytes(content)
    with pytest.raises(FileError, match=match) as caught:
        pfbr.load(path)
    assert str(path) in str(caught.value)


def test_a_file_cut_short_is_refused(saved, tmp_path):
    content = saved[2]
    for length in (0, 1, 5, 40, content.index(b"\n"), len(content) // 2, len(content) - 1):
        refused(tmp_path / "cut.pfbr", content[:length])
    refused(tmp_path / "cut.pfbr", content + b"\0", "checksum")


@given(where=st.floats(0, 1, exclude_max=True), change=st.integers(1, 255))
def test_a_changed_byte_is_noticed(saved, where, change):
    path, _, content = saved
    changed = bytearray(content)
    changed[int(where * len(content))] ^= change
    refused(path.with_name("flipped.pfbr"), bytes(changed))


def rewritten(content, header=None, arrays=None):
    """The file with another header or other arrays, and a right checksum."""
    old_header, old_arrays = containers.from_bytes(content, "operator")
    return containers.to_bytes("operator", old_header if header is None else header, arrays or old_arrays)


def test_arrays_are_found_by_their_names(saved, tmp_path):
    """Two of one shape in each other's place, each with its name: the operator is the same."""
    _, operator, content = saved
    _, arrays = containers.from_bytes(content, "operator")
    first, second = ".velocity.layers[0].speed", ".velocity.layers[1].speed"
    assert arrays[first].shape == arrays[second].shape
    assert not np.array_equal(arrays[first], arrays[second])
    order = list(arrays)
    i, j = order.index(first), order.index(second)
    order[i], order[j] = second, first
    (tmp_path / "moved.pfbr").write_bytes(rewritten(content, arrays={name: arrays[name] for name in order}))
    assert eqx.tree_equal(pfbr.load(tmp_path / "moved.pfbr"), operator)


def test_arrays_that_are_not_those_of_the_network_are_named(saved, tmp_path):
    _, arrays = containers.from_bytes(saved[2], "operator")
    renamed = {name.replace(".layers[0].speed", ".layers[0].pace"): array for name, array in arrays.items()}
    refused(tmp_path / "a.pfbr", rewritten(saved[2], arrays=renamed), r"\.layers\[0\]\.pace")
    reshaped = {name: array.reshape(1, -1) if name.endswith(".speed") else array for name, array in arrays.items()}
    refused(tmp_path / "a.pfbr", rewritten(saved[2], arrays=reshaped), r"\.speed")


@pytest.mark.parametrize(
    "change",
    [
        {"architecture": None},
        {"architecture": "paper"},
        {"architecture": {}},
        {"architecture": {"name": "newest"}},
        {"architecture": {"name": "paper"}},
        {"architecture": {"name": "paper", "dim": "two", "observation_shape": [2], "settings": {}}},
        {"architecture": {"name": "paper", "dim": 2, "observation_shape": 3, "settings": {}}},
        {"architecture": {"name": "paper", "dim": 2, "observation_shape": [2], "settings": {"depth": 3}}},
        {"architecture": {"name": "paper", "dim": 2, "observation_shape": [2], "settings": [1]}},
        {"architecture": {"name": "paper", "dim": -2, "observation_shape": [2], "settings": {}}},
        {"architecture": {"name": "paper", "dim": 3, "observation_shape": [2], "settings": {}}},
        {"architecture": {"name": "paper", "dim": None, "observation_shape": [2], "settings": {}}},
        {"architecture": {"name": ["paper"], "dim": 2, "observation_shape": [2], "settings": {}}},
    ],
)
def test_a_header_that_describes_no_network_is_refused(change, saved, tmp_path):
    header, _ = containers.from_bytes(saved[2], "operator")
    refused(tmp_path / "lying.pfbr", rewritten(saved[2], header=header | change))


words = (
    st.none() | st.booleans() | st.integers(-3, 9) | st.floats() | st.text(max_size=3) | st.lists(st.integers(-2, 4))
)
settings = st.dictionaries(st.sampled_from(["width", "num_layers", "steps", "solver", "feed", "qmc", "time"]), words)


@given(dim=words, shape=words, settings=settings | words, name=st.sampled_from(NAMES))
def test_any_description_is_read_or_refused(saved, dim, shape, settings, name):
    path, _, content = saved
    design = {"name": name, "dim": dim, "observation_shape": shape, "settings": settings}
    try:
        path.with_name("any.pfbr").write_bytes(rewritten(content, header={"architecture": design}))
        pfbr.load(path.with_name("any.pfbr"))
    except FileError:
        return
    assert (name, dim, shape) == ("paper", 2, [2])  # the only one that these arrays fit


def test_what_is_not_an_operator_is_refused_with_the_reason(saved, tmp_path):
    content = saved[2]
    refused(tmp_path / "picture.pfbr", b"\x89PNG\r\n\x1a\n" + bytes(100), "not a pfbr")
    refused(tmp_path / "newer.pfbr", content.replace(b"pfbr-operator 2 ", b"pfbr-operator 3 "), "newer.*update")
    refused(tmp_path / "older.pfbr", content.replace(b"pfbr-operator 2 ", b"pfbr-operator 1 "), "format 1")
    refused(tmp_path / "other.pfbr", containers.to_bytes("checkpoint", {}, {}), "pfbr-checkpoint")
    with pytest.raises(FileError, match="no file"):
        pfbr.load(tmp_path / "missing.pfbr")
    with pytest.raises(FileError, match="cannot read"):
        pfbr.load(tmp_path)
    with pytest.raises(FileError):
        pfbr.read_header(tmp_path / "missing.pfbr")


def test_what_cannot_be_written_is_said_before(saved, tmp_path):
    with pytest.raises(FileError, match="does not exist"):
        pfbr.save(tmp_path / "nowhere" / "a.pfbr", saved[1])
    for wrong in (pfbr.gaussian_operator(), "operator", None, jnp.zeros(2)):
        with pytest.raises(PfbrError, match=r"pfbr\.fit") as caught:
            pfbr.save(tmp_path / "a.pfbr", wrong)
        assert isinstance(caught.value, InputError)
    assert list(tmp_path.iterdir()) == []


def test_another_story_is_no_other_operator_for_the_compiler(saved):
    """The same weights with another provenance: nothing is traced again."""
    _, operator, _ = saved
    other = dataclasses.replace(operator, provenance=Provenance({"told": "otherwise" * 1000}))
    traces = []

    @eqx.filter_jit
    def through(operator):
        traces.append(1)
        return jax.tree.map(lambda leaf: leaf + 0, eqx.filter(operator, eqx.is_array))

    for one in (operator, other, dataclasses.replace(operator, provenance=Provenance())):
        through(one)
    assert len(traces) == 1
    assert other.provenance.document != operator.provenance.document
    assert "told" in repr(other.provenance)


def test_every_architecture_that_has_weights_is_asked_here():
    assert set(SETTINGS) == set(NAMES) - {"gaussian"}
