"""Arrays kept as a few rows come back bit for bit, and take less room; rows that do not fit are refused."""

import numpy as np
import pytest

from pfbr.errors import FileError
from pfbr.io.sparse import ROWS, WHICH, packed, unpacked

RNG = np.random.default_rng(0)
BUFFER = np.zeros((64, 3), np.float32)
BUFFER[:5] = RNG.normal(size=(5, 3))
BUFFER[2] = [-0.0, np.nan, np.inf]
ARRAYS = {
    ".buffer": BUFFER,
    ".mask": np.arange(64) < 5,
    ".full": RNG.normal(size=(4, 2)),
    ".count": np.asarray(5, np.int32),
    ".none": np.zeros((0, 3), np.float32),
}
SHAPES = {name: array.shape for name, array in ARRAYS.items()}


def same(a: dict, b: dict) -> None:
    assert a.keys() == b.keys()
    for name in a:
        assert a[name].dtype == b[name].dtype
        assert a[name].tobytes() == b[name].tobytes(), name


def test_half_empty_buffers_come_back_bit_for_bit_from_their_rows():
    kept = packed(ARRAYS)
    assert set(kept) == {
        ".buffer" + WHICH,
        ".buffer" + ROWS,
        ".mask" + WHICH,
        ".mask" + ROWS,
        ".full",
        ".count",
        ".none",
    }
    assert kept[".buffer" + WHICH].tolist() == [0, 1, 2, 3, 4]  # −0 is no zero
    same(unpacked(kept, SHAPES, "it"), ARRAYS)


def test_what_is_shared_with_another_is_kept_once():
    later = {name: array.copy() for name, array in ARRAYS.items()}
    later[".buffer"][5], later[".count"] = 1.0, np.asarray(6, np.int32)
    kept = packed(ARRAYS, later)
    assert kept[".buffer" + WHICH].tolist() == [5]
    assert kept[".full" + WHICH].size == 0
    same(unpacked(kept, SHAPES, "it", later), ARRAYS)


@pytest.mark.parametrize("which", [[64], [-1], [0, 1]], ids=["beyond", "before", "too many"])
def test_rows_that_do_not_fit_are_refused(which):
    kept = {".buffer" + WHICH: np.asarray(which, np.int32), ".buffer" + ROWS: BUFFER[:1]}
    with pytest.raises(FileError, match=r"the/file.*\.buffer"):
        unpacked(kept, SHAPES, "the/file")
    with pytest.raises(FileError, match="fit together"):
        unpacked({".other" + ROWS: BUFFER[:1]}, SHAPES, "it")
