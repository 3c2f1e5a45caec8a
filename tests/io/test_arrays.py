"""Arrays come back bit for bit; a header that lies is found out before anything is allocated."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from pfbr.errors import FileError
from pfbr.io import arrays

DTYPES = st.sampled_from([np.float32, np.float64, np.int32, np.int64, np.uint8, np.bool_, ">f4"])


def saved(array) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


@given(st_numpy.arrays(DTYPES, st_numpy.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)), st.booleans())
def test_what_numpy_saves_comes_back(array, columns):
    array = np.asfortranarray(array) if columns else array
    found = arrays.array_of(saved(array), "this")
    assert (found.shape, found.dtype) == (array.shape, array.dtype)
    assert found.tobytes() == array.tobytes()


@given(st.data())
def test_a_flipped_byte_never_does_more_than_another_number(data):
    content = bytearray(saved(np.arange(6.0).reshape(2, 3)))
    content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        assert arrays.array_of(bytes(content), "the/file").nbytes == 48
    except FileError as error:
        said = str(error)
    else:
        return
    assert said.startswith("the/file")


def test_all_of_an_archive_or_nothing(tmp_path):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, a=np.arange(3), b=np.array(["x"]))
    found = arrays.read_npz(path)
    assert list(found) == ["a", "b"]
    np.testing.assert_array_equal(found["a"], [0, 1, 2])
    with pytest.raises(FileError, match=r"'b\.npy'.*must hold an array of numbers"):
        arrays.read_npz(path, kinds="fiub")
    whole = path.read_bytes()
    for end in range(0, len(whole), 40):
        path.write_bytes(whole[:end])
        with pytest.raises(FileError, match=r"a\.npz"):
            arrays.read_npz(path)


def test_objects_are_never_made(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{}], object), allow_pickle=True)
    with pytest.raises(FileError, match="holds object"):
        arrays.read_npy(tmp_path / "a.npy")
