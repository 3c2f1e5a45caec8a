"""Arrays that differ from others in a few rows, kept as these rows: half-empty buffers, states that are much alike."""

from collections.abc import Mapping

import numpy as np

from pfbr.errors import FileError

WHICH, ROWS = "@which", "@rows"


def packed(arrays: Mapping[str, np.ndarray], base: Mapping[str, np.ndarray] | None = None) -> dict[str, np.ndarray]:
    """Each array as it is, or, where that is less, as the rows in which it differs from `base` (None: from zeros).

    Rows are compared byte by byte, so that −0 and NaN come back as they were.
    """
    kept: dict[str, np.ndarray] = {}
    for name, array in arrays.items():
        which = _differing(array, None if base is None else base[name])
        if which is None:
            kept[name] = array
        else:
            kept[name + WHICH], kept[name + ROWS] = which, array[which]
    return kept


def unpacked(
    kept: Mapping[str, np.ndarray],
    shapes: Mapping[str, tuple[int, ...]],
    source: str,
    base: Mapping[str, np.ndarray] | None = None,
) -> dict[str, np.ndarray]:
    """The arrays that `packed` was given; `shapes` are those of the ones that may be kept as rows."""
    arrays: dict[str, np.ndarray] = {}
    for name, array in kept.items():
        if name.endswith(WHICH):
            continue
        if not name.endswith(ROWS):
            arrays[name] = array
            continue
        own = name.removesuffix(ROWS)
        which, shape = kept.get(own + WHICH), shapes.get(own)
        if which is None or shape is None or not _fits(which, array, shape):
            raise FileError(f"{source} holds rows of {own!r} that do not fit together. Make it again.")
        whole = np.zeros(shape, array.dtype) if base is None else base[own].astype(array.dtype, copy=True)
        whole[which] = array
        arrays[own] = whole
    return arrays


def _differing(array: np.ndarray, base: np.ndarray | None) -> np.ndarray | None:
    """The rows that are not as in the base; None where keeping the whole array takes no more room."""
    if array.ndim == 0 or array.size == 0 or (base is not None and base.shape != array.shape):
        return None
    rows = _bytes(array)
    differs = np.any(rows, axis=1) if base is None else np.any(rows != _bytes(base.astype(array.dtype)), axis=1)
    which = np.flatnonzero(differs).astype(np.int32)
    return which if which.size * (rows.shape[1] + which.itemsize) < rows.size else None


def _bytes(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).reshape(len(array), -1).view(np.uint8)


def _fits(which: np.ndarray, rows: np.ndarray, shape: tuple[int, ...]) -> bool:
    whole = which.ndim == 1 and which.dtype.kind == "i" and rows.shape == (len(which), *shape[1:])
    return whole and bool(np.all((which >= 0) & (which < shape[0])))
