"""Principal components from a stream are those of a dense decomposition."""

import numpy as np
import pytest

from pfbr.errors import InputError
from pfbr.paper.digits import Reduction, load_digits, shipped_reduction
from pfbr.paper.digits.deformation import deform
from pfbr.paper.digits.reduction import Moments, as_vectors, fit_reduction


def test_components_are_those_of_a_dense_decomposition(few):
    images = few.images[:, ::4, ::4]  # 49 pixels: a decomposition of 784 takes its time
    vectors = as_vectors(images)
    parts = [Moments.of(vectors[:40]), Moments.of(vectors[40:41]), Moments.of(vectors[41:])]
    moments = Moments.none(49).plus(parts[0]).plus(parts[1]).plus(parts[2])
    reduction = fit_reduction(moments, 6)
    centred = vectors.astype(float) - vectors.mean(axis=0)
    _, values, dense = np.linalg.svd(centred, full_matrices=False)
    assert np.allclose(reduction.scale, values[:6] / np.sqrt(150), rtol=1e-4)
    overlap = np.abs(np.sum(dense[:6].T * reduction.components, axis=0))
    assert np.allclose(overlap, 1, atol=1e-4)
    assert np.isclose(reduction.share, np.sum(values[:6] ** 2) / np.sum(values**2), rtol=1e-4)
    features = reduction.features(images)
    assert np.allclose(features.mean(axis=0), 0, atol=1e-4)
    assert np.allclose(features.T @ features / 150, np.eye(6), atol=1e-3)


def test_components_need_a_sensible_number(few):
    moments = Moments.of(as_vectors(few.images[:, ::4, ::4]))
    with pytest.raises(InputError, match="num_components"):
        fit_reduction(moments, 50)
    with pytest.raises(InputError, match="at least two"):
        fit_reduction(Moments.none(49), 5)
    with pytest.raises(InputError, match="49 pixels"):
        fit_reduction(moments, 5).features(np.zeros((1, 10), np.uint8))


def test_the_shipped_components_fit_the_deformed_digits():
    """Fitted on all 135 variants; 3,000 images of one variant have nearly unit variance in each of them."""
    reduction = shipped_reduction()
    assert reduction.components.shape == (784, 50)
    assert np.allclose(reduction.components.T @ reduction.components, np.eye(50), atol=1e-5)
    images = deform(load_digits("train").images[:3000], np.arange(3000), 5)
    features = reduction.features(images)
    assert np.abs(features.mean(axis=0)).max() < 0.15
    assert np.all(np.abs(features.var(axis=0) - 1) < 0.25)


def test_a_reduction_survives_its_file(few, tmp_path):
    images = few.images[:, ::4, ::4]
    reduction = fit_reduction(Moments.of(as_vectors(images)), 3)
    reduction.save(tmp_path / "r.pfbr")
    assert np.array_equal(Reduction.load(tmp_path / "r.pfbr").features(images), reduction.features(images))
