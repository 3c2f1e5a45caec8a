"""Principal components from a stream: moments are summed up piece by piece, and the pieces are never kept."""

import dataclasses
import os
from importlib import resources

import numpy as np

from pfbr.errors import FileError, InputError
from pfbr.io import containers


@dataclasses.dataclass(frozen=True)
class Moments:
    """Number, sum (p,) and sum of outer products (p, p) of the vectors seen so far: all that PCA needs, exactly."""

    count: int
    total: np.ndarray
    products: np.ndarray

    @classmethod
    def none(cls, size: int) -> "Moments":
        return cls(0, np.zeros(size), np.zeros((size, size)))

    @classmethod
    def of(cls, vectors: np.ndarray) -> "Moments":
        """Those of the rows of one piece; float32 suffices within a piece, and sums over pieces have sixteen digits."""
        total = np.asarray(np.sum(vectors, axis=0, dtype=np.float64))
        return cls(len(vectors), total, (vectors.T @ vectors).astype(np.float64))

    def plus(self, other: "Moments") -> "Moments":
        return Moments(self.count + other.count, self.total + other.total, self.products + other.products)


@dataclasses.dataclass(frozen=True)
class Reduction:
    """Images to a few features: (pixels/255 − mean) · components / scale, each with variance one over the stream."""

    mean: np.ndarray  # (p,)
    components: np.ndarray  # (p, k), columns orthonormal, the largest variance first
    scale: np.ndarray  # (k,) standard deviations
    share: float  # of the variance that the components keep

    def features(self, images: np.ndarray) -> np.ndarray:
        """(n, …) 8-bit images to (n, k) float32."""
        vectors = as_vectors(images)
        if vectors.shape[1] != self.mean.shape[0]:
            raise InputError(f"images must have {self.mean.shape[0]} pixels; got {vectors.shape[1]}.")
        return self.project(vectors)

    def project(self, vectors: np.ndarray) -> np.ndarray:
        """The same for images that are rows of numbers in [0, 1] already."""
        matrix = self.components / self.scale
        return (vectors @ matrix - self.mean @ matrix).astype(np.float32)

    def save(self, path: str | os.PathLike) -> None:
        arrays = {"mean": self.mean, "components": self.components, "scale": self.scale}
        containers.write(path, "reduction", {"share": self.share}, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike) -> "Reduction":
        header, arrays = containers.read(path, "reduction")
        if set(arrays) != {"mean", "components", "scale"}:
            raise FileError(f"{path} holds {', '.join(arrays)}, which is no reduction; make it again.")
        return cls(**arrays, share=float(header["share"]))


def fit_reduction(moments: Moments, num_components: int) -> Reduction:
    """Principal components of the vectors behind the moments."""
    if not 1 <= num_components <= moments.total.shape[0]:
        raise InputError(f"`num_components` must be in 1 … {moments.total.shape[0]}; got {num_components}.")
    if moments.count < 2:
        raise InputError(f"principal components need at least two vectors; got {moments.count}.")
    mean = moments.total / moments.count
    covariance = moments.products / moments.count - np.outer(mean, mean)
    variances, vectors = np.linalg.eigh(covariance)
    variances, vectors = variances[::-1][:num_components], vectors[:, ::-1][:, :num_components]
    # a direction and its opposite are the same component: take the one whose largest entry is positive
    largest = vectors[np.argmax(np.abs(vectors), axis=0), np.arange(num_components)]
    vectors = vectors * np.sign(largest)
    scale = np.sqrt(np.maximum(variances, 1e-12))  # a constant direction has no scale; it stays at zero
    share = float(variances.sum() / np.trace(covariance))
    return Reduction(mean.astype(np.float32), vectors.astype(np.float32), scale.astype(np.float32), share)


def as_vectors(images: np.ndarray) -> np.ndarray:
    """8-bit images as rows of numbers in [0, 1]."""
    return images.reshape(len(images), -1).astype(np.float32) / np.float32(255)


def shipped_reduction() -> Reduction:
    """The 50 components of the 1.59 million deformed images, as `pfbr data mnist8m` makes them."""
    with resources.as_file(resources.files("pfbr.paper.digits") / "reduction.pfbr") as path:
        return Reduction.load(path)
