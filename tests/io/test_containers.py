"""Named arrays survive the disk bit for bit; a file that is not whole, or not ours, or lies, is refused."""

import hashlib
import json

import equinox as eqx
import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import numpy as jnp

from pfbr.errors import FileError, InputError
from pfbr.io import containers

RNG = np.random.default_rng(0)
ARRAYS = {
    ".first": RNG.normal(size=(3, 4)).astype(np.float32),
    ".second[0]": RNG.normal(size=(2,)),
    ".count": np.asarray(7, np.int32),
    ".seen": np.array([True, False]),
    ".none": np.zeros((0, 5), np.float32),
    ".key": np.array([1, 2], np.uint32),
}
HEADER = {"settings": {"steps": 3, "rate": 0.1}, "history": [1.0, None], "name": "ä"}
CONTENT = containers.to_bytes("operator", HEADER, ARRAYS)


def refused(content: bytes, match: str | None = None) -> None:
    with pytest.raises(FileError, match=match) as caught:
        containers.from_bytes(content, "operator", "the/file")
    assert "the/file" in str(caught.value)
    assert "\n" not in str(caught.value)


def claiming(header, numbers: bytes = b"") -> bytes:
    """A file with a right checksum, whatever its header says."""
    line = header if isinstance(header, bytes) else json.dumps(header).encode()
    body = line + b"\n" + numbers
    return b"pfbr-operator 2 " + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def test_it_comes_back_as_it_was(tmp_path):
    containers.write(tmp_path / "a", "operator", HEADER, ARRAYS)
    assert (tmp_path / "a").read_bytes() == CONTENT
    header, arrays = containers.read(tmp_path / "a", "operator")
    assert header == HEADER
    assert list(arrays) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(arrays[name], array)
    containers.write(tmp_path / "b", "operator", header, arrays)
    assert (tmp_path / "b").read_bytes() == CONTENT


def test_two_lines_of_text_come_first():
    first, second, *_ = CONTENT.split(b"\n")
    assert first.startswith(b"pfbr-operator 2 ")
    assert [entry["name"] for entry in json.loads(second)["arrays"]] == list(ARRAYS)
    assert json.loads(second)["settings"] == HEADER["settings"]


def test_a_file_cut_short_or_gone_on_is_refused():
    for tenth in range(len(CONTENT) // 10 + 1):
        refused(CONTENT[: 10 * tenth])
    for length in (1, 5, CONTENT.index(b"\n"), CONTENT.index(b"\n") + 1, len(CONTENT) - 1):
        refused(CONTENT[:length])
    refused(CONTENT + b"\0", "checksum")


def test_a_hundred_flipped_bits_are_noticed_one_by_one():
    for where in np.random.default_rng(1).integers(0, 8 * len(CONTENT), 100):
        changed = bytearray(CONTENT)
        changed[where // 8] ^= 1 << (where % 8)
        refused(bytes(changed))


def test_every_bit_of_the_first_line_counts():
    for where in range(8 * (CONTENT.index(b"\n") + 1)):
        changed = bytearray(CONTENT)
        changed[where // 8] ^= 1 << (where % 8)
        refused(bytes(changed))


def entry(**changes) -> dict:
    return {"name": "a", "shape": [2], "dtype": "float32"} | changes


LIES = {
    "no header": b"",
    "no JSON": b"{",
    "no text": b"\xff\xfe\x00",
    "a list": [],
    "nested beyond reason": b"[" * 100_000,
    "no arrays": {},
    "arrays that are none": {"arrays": {"a": 1}},
    "an array that is none": {"arrays": [3]},
    "no name": {"arrays": [{"shape": [2], "dtype": "float32"}]},
    "a name that is none": {"arrays": [entry(name=["a"])]},
    "no shape": {"arrays": [{"name": "a", "dtype": "float32"}]},
    "a negative shape": {"arrays": [entry(shape=[-2])]},
    "a shape of fractions": {"arrays": [entry(shape=[2.0])]},
    "a shape of truths": {"arrays": [entry(shape=[True, 2])]},
    "a shape of texts": {"arrays": [entry(shape=["2"])]},
    "a shape of lists": {"arrays": [entry(shape=[[2]])]},
    "too many axes": {"arrays": [entry(shape=[1] * 40 + [2])]},
    "more bytes than there are": {"arrays": [entry(shape=[3])]},
    "more bytes than any machine has": {"arrays": [entry(shape=[2**40, 2**40])]},
    "nothing, very wide": {"arrays": [entry(), entry(name="b", shape=[0, 2**70])]},
    "fewer bytes than there are": {"arrays": [entry(shape=[1])]},
    "no array at all": {"arrays": []},
    "one name twice": {"arrays": [entry(shape=[1]), entry(shape=[1])]},
    "no type": {"arrays": [{"name": "a", "shape": [2]}]},
    "objects": {"arrays": [entry(dtype="object")]},
    "a type that is none": {"arrays": [entry(dtype="float33")]},
    "a list for a type": {"arrays": [entry(dtype=["float32"])]},
    "a structured type": {"arrays": [entry(dtype={"names": ["a"], "formats": ["f4"]})]},
    "the other byte order": {"arrays": [entry(dtype=">f4")]},
}


@pytest.mark.parametrize("name", LIES)
def test_a_header_that_lies_is_refused(name):
    refused(claiming(LIES[name], np.zeros(2, np.float32).tobytes()))


def test_a_header_that_does_not_lie_is_not():
    header, arrays = containers.from_bytes(claiming({"arrays": [entry()]}, bytes(8)), "operator")
    assert header == {}
    np.testing.assert_array_equal(arrays["a"], [0.0, 0.0])
    assert containers.from_bytes(claiming({"arrays": []}), "operator") == ({}, {})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
entries = st.dictionaries(st.sampled_from(["name", "shape", "dtype"]), json_values | st.just("float32"))


@given(listed=st.lists(entries, max_size=3) | json_values, numbers=st.binary(max_size=24))
def test_any_header_is_read_or_refused(listed, numbers):
    try:
        _, arrays = containers.from_bytes(claiming({"arrays": listed}, numbers), "operator")
    except FileError:
        return
    assert sum(array.nbytes for array in arrays.values()) == len(numbers)


def test_other_files_are_refused_with_the_reason(tmp_path):
    refused(b"\x89PNG\r\n\x1a\n" + bytes(100), "not a pfbr operator file")
    refused(b"hello\n", "not a pfbr operator file")
    refused(containers.to_bytes("checkpoint", {}, {}), "pfbr-checkpoint file, not a pfbr-operator")
    refused(CONTENT.replace(b"pfbr-operator 2 ", b"pfbr-operator 3 "), "newer.*update")
    refused(CONTENT.replace(b"pfbr-operator 2 ", b"pfbr-operator 1 "), "format 1.*Make it again")
    refused(CONTENT.replace(b"pfbr-operator 2 ", b"pfbr-operator two "), "names no format")
    with pytest.raises(FileError, match="no file"):
        containers.read(tmp_path / "missing", "operator")
    with pytest.raises(FileError, match="cannot read"):
        containers.read(tmp_path, "operator")


def test_what_no_file_can_hold_is_not_written(tmp_path):
    for array in (np.array(["text"]), np.array([None]), np.zeros(2, ">f4"), np.zeros(2, np.complex64)):
        with pytest.raises(InputError, match="no pfbr file"):
            containers.write(tmp_path / "a", "operator", {}, {"a": array})
    assert list(tmp_path.iterdir()) == []


class Layers(eqx.Module):
    first: jax.Array
    second: jax.Array
    width: int = eqx.field(static=True, default=2)


class Swapped(eqx.Module):
    """The same with its fields in another order."""

    second: jax.Array
    first: jax.Array
    width: int = eqx.field(static=True, default=2)


class Renamed(eqx.Module):
    first: jax.Array
    third: jax.Array
    width: int = eqx.field(static=True, default=2)


def shapes(kind, dtype=jnp.float32):
    return eqx.filter_eval_shape(lambda: kind(*[jnp.zeros((2, 2), dtype)] * 2))


@pytest.mark.parametrize("kind", [Layers, Swapped])
def test_arrays_are_found_by_name_not_by_place(kind):
    """Two of the same shape: by place, they would change roles without a word."""
    stored = containers.named_leaves(Layers(jnp.ones((2, 2)), 2 * jnp.ones((2, 2))))
    assert list(stored) == [".first", ".second"]
    found = containers.filled(shapes(kind), stored, "the/file")
    np.testing.assert_array_equal(found.first, np.ones((2, 2)))
    np.testing.assert_array_equal(found.second, 2 * np.ones((2, 2)))
    assert found.width == 2


def test_arrays_that_do_not_fit_are_named():
    stored = containers.named_leaves(Layers(jnp.ones((2, 2)), jnp.ones((2, 2))))
    with pytest.raises(FileError, match=r"the/file.*\.second, \.third"):
        containers.filled(shapes(Renamed), stored, "the/file")
    with pytest.raises(FileError, match=r"\.first"):
        containers.filled(shapes(Layers), stored | {".first": np.ones((2, 3), np.float32)}, "the/file")
    with pytest.raises(FileError, match=r"\.second"):
        containers.filled(shapes(Layers), stored | {".second": np.ones((2, 2), np.int32)}, "the/file")
    # another precision is the same array
    containers.filled(shapes(Layers), stored | {".second": np.ones((2, 2), np.float64)}, "the/file")


def test_no_file_can_run_code(root):
    """Reading is bytes, JSON and numbers; nothing that could execute what it reads. Spark's own way to send a function
    to its workers carries the model; no file is read by it."""
    sends = {root / "src/pfbr/scale" / name for name in ("spark.py", "spark_work.py")}
    for path in {*(root / "src" / "pfbr").rglob("*.py")} - sends:
        text = path.read_text()
        for word in ("import pickle", "allow_pickle=True", "cloudpickle", "marshal", "joblib.load"):
            assert word not in text, path
