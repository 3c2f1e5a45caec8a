"""1.59 million digits as features on disk: every training image in 135 variants, made in pieces, never all at once.

Two passes over the stream of deformed images. The first sums up their moments, which give the principal components; the
second makes the images again (faster than reading them from a disk) and keeps their features, one file for each
variant. What is on disk is whole and has a checksum; after a kill, work goes on where it stopped and ends with the same
bytes.
"""

import dataclasses
import functools
import hashlib
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from pfbr.errors import FileError, InputError
from pfbr.io import containers
from pfbr.io.files import make_directory
from pfbr.io.json_text import read_table
from pfbr.io.records import agree_on
from pfbr.io.schema import Kind, Optional, check_table, text, whole
from pfbr.judging.evaluate import Notify
from pfbr.paper.digits import deformation
from pfbr.paper.digits.images import Digits, load_digits
from pfbr.paper.digits.reduction import Moments, Reduction, as_vectors, fit_reduction

MANIFEST, REDUCTION, MOMENTS = "stream.json", "reduction.pfbr", "moments.pfbr"
IDENTITY: dict[str, Kind | Optional] = {"digits": text(), "variants": whole(1, 10_000)}
BLOCK = 2048  # images at a time: a few megabytes each
SAVE_EVERY = 8  # variants between two saves of the moments: at most this much is lost by a kill


@dataclasses.dataclass(frozen=True)
class StreamSettings:
    """Each field with its reason."""

    variants: int = 135  # of each image, the original among them: 11,769 × 135 = 1.59 million
    components: int = 50  # as in the paper

    def __post_init__(self):
        if self.variants < 1:
            raise InputError(f"`variants` must be at least 1; got {self.variants}.")
        if self.components < 1:
            raise InputError(f"`components` must be at least 1; got {self.components}.")


@dataclasses.dataclass(frozen=True)
class PreparedDigits:
    """A prepared directory: the features of one variant of all images at a time."""

    directory: Path
    reduction: Reduction
    labels: np.ndarray  # (n,) of the images, the same for every variant
    num_variants: int

    @property
    def num_images(self) -> int:
        return self.num_variants * len(self.labels)

    def features(self, variant: int) -> np.ndarray:
        """(n, k) float32, checked against their checksum."""
        if not 0 <= variant < self.num_variants:
            raise InputError(f"`variant` must be in 0 … {self.num_variants - 1}; got {variant}.")
        return containers.read(_variant_path(self.directory, variant), "features")[1]["features"]


def prepare(
    directory: str | os.PathLike,
    *,
    settings: StreamSettings | None = None,
    digits: Digits | None = None,
    workers: int | None = None,
    progress: Notify | None = None,
) -> PreparedDigits:
    """Make the stream in `directory`, or finish one that was begun there; damaged files are made again."""
    settings = settings or StreamSettings()
    digits = digits or load_digits("train")
    directory = Path(directory)
    if directory.exists() and not directory.is_dir():
        raise FileError(f"{directory} is a file; the stream needs a directory. Choose another path.")
    make_directory(directory)
    say = progress or (lambda *_: None)
    agree_on(directory / MANIFEST, _identity(settings, digits), "stream")
    with ThreadPoolExecutor(workers or len(os.sched_getaffinity(0))) as pool:
        reduction = _whole(directory / REDUCTION, Reduction.load)
        if reduction is None:
            moments = _moments(pool, directory, settings, digits, say)
            fit_reduction(moments, settings.components).save(directory / REDUCTION)
            reduction = Reduction.load(directory / REDUCTION)
        _project(pool, directory, settings, digits, reduction, say)
    (directory / MOMENTS).unlink(missing_ok=True)  # only needed to go on
    return open_stream(directory, digits=digits)


def open_stream(directory: str | os.PathLike, *, digits: Digits | None = None) -> PreparedDigits:
    """A stream that `prepare` has finished."""
    directory = Path(directory)
    digits = digits or load_digits("train")
    if not (directory / MANIFEST).is_file():
        raise FileError(f"there is no prepared stream in {directory}. Make one: pfbr data mnist8m --out {directory}")
    identity = read_table(directory / MANIFEST)
    check_table(identity, IDENTITY, str(directory / MANIFEST))
    if identity["digits"] != _fingerprint(digits):
        raise FileError(f"the stream in {directory} was made from other images.")
    missing = [v for v in range(identity["variants"]) if not _variant_path(directory, v).is_file()]
    if missing or not (directory / REDUCTION).is_file():
        raise FileError(
            f"the stream in {directory} is not finished ({len(missing)} of {identity['variants']} variants are "
            f"missing). Finish it: pfbr data mnist8m --out {directory}"
        )
    return PreparedDigits(directory, Reduction.load(directory / REDUCTION), digits.labels, identity["variants"])


def _blocks(digits: Digits, variant: int) -> Iterator[np.ndarray]:
    """Vectors of one variant, a block of images at a time."""
    for start in range(0, len(digits.images), BLOCK):
        images = digits.images[start : start + BLOCK]
        yield as_vectors(deformation.deform(images, np.arange(start, start + len(images)), variant))


def _moments(pool, directory: Path, settings: StreamSettings, digits: Digits, say: Notify) -> Moments:
    """The first pass. Variants are added up in order, whoever made them, so that a sum is the same every time."""
    size, each = digits.images[0].size, len(digits.images)
    begun = _whole(directory / MOMENTS, lambda path: containers.read(path, "moments"))
    done, moments = (
        (0, Moments.none(size)) if begun is None else (begun[0]["variants"], Moments(begun[0]["count"], **begun[1]))
    )

    def one(variant: int) -> Moments:
        return functools.reduce(Moments.plus, map(Moments.of, _blocks(digits, variant)))

    for variant, part in zip(
        range(done, settings.variants), pool.map(one, range(done, settings.variants)), strict=True
    ):
        moments = moments.plus(part)
        if (variant + 1) % SAVE_EVERY == 0:
            header = {"variants": variant + 1, "count": moments.count}
            arrays = {"total": moments.total, "products": moments.products}
            containers.write(directory / MOMENTS, "moments", header, arrays)
        say("principal components", (variant + 1) * each, settings.variants * each)
    return moments


def _project(
    pool, directory: Path, settings: StreamSettings, digits: Digits, reduction: Reduction, say: Notify
) -> None:
    """The second pass: what is whole stays, the rest is made."""
    each, mark = len(digits.images), _mark(reduction)

    def one(variant: int) -> None:
        path = _variant_path(directory, variant)
        stored = _whole(path, lambda p: containers.read(p, "features"))
        if stored is None or stored[0] != {"variant": variant, "reduction": mark}:
            features = np.concatenate([reduction.project(block) for block in _blocks(digits, variant)])
            containers.write(path, "features", {"variant": variant, "reduction": mark}, {"features": features})

    for variant, _ in enumerate(pool.map(one, range(settings.variants))):
        say("features", (variant + 1) * each, settings.variants * each)


def _variant_path(directory: Path, variant: int) -> Path:
    return directory / f"variant-{variant:03d}.pfbr"


def _whole(path: Path, read: Callable[[Path], Any]) -> Any:
    """What a file holds, or None where it is missing or damaged."""
    try:
        return read(path)
    except FileError:
        return None


def _identity(settings: StreamSettings, digits: Digits) -> dict[str, Any]:
    """All that decides what the files hold."""
    names = ("GRID", "BUMP_WIDTH", "STRENGTH", "TRANSLATION")
    how = {name.lower(): getattr(deformation, name) for name in names}
    return dataclasses.asdict(settings) | {"digits": _fingerprint(digits), "deformation": how}


def _fingerprint(digits: Digits) -> str:
    return hashlib.sha256(digits.images.tobytes() + digits.labels.tobytes()).hexdigest()


def _mark(reduction: Reduction) -> str:
    return hashlib.sha256(reduction.components.tobytes() + reduction.mean.tobytes()).hexdigest()
