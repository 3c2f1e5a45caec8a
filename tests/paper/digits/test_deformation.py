"""Deformations that can be made again, are small, and are random enough."""

import numpy as np
import pytest

from pfbr.errors import InputError
from pfbr.paper.digits import deformation
from pfbr.paper.digits.deformation import deform


def test_variant_zero_is_the_original(few):
    assert np.array_equal(deform(few.images, np.arange(150), 0), few.images)


def test_a_deformation_depends_on_index_and_variant_alone(few):
    together = deform(few.images[:6], np.arange(6), 7)
    alone = np.concatenate([deform(few.images[i : i + 1], np.array([i]), 7) for i in (5, 2)])
    assert np.array_equal(alone, together[[5, 2]])
    assert not np.array_equal(deform(few.images[:6], np.arange(6), 8), together)
    assert not np.array_equal(deform(few.images[:6], np.arange(1, 7), 7), together)


def test_deformations_are_small_and_keep_the_ink(few):
    """Values do not leave the range, and a digit keeps most of its ink: it is neither pushed out nor washed out."""
    for variant in (1, 2, 3):
        deformed = deform(few.images, np.arange(150), variant)
        ink = deformed.sum(axis=(1, 2), dtype=float) / few.images.sum(axis=(1, 2), dtype=float)
        assert 0.9 < ink.mean() < 1.1
        assert ink.min() > 0.5
        assert ink.max() < 1.8
        assert np.all(np.abs(deformed.astype(int) - few.images).mean(axis=(1, 2)) > 1)  # and something moved


def test_a_translation_by_whole_pixels_is_a_shift(few, monkeypatch):
    numbers = np.full((4, 2 * deformation.GRID**2 + 2), 0.5, np.float32)  # the median: no displacement
    numbers[:, -2:] = 0.5 + np.array([1, -2]) / (2 * deformation.TRANSLATION)  # a row down, two columns left
    monkeypatch.setattr(deformation, "_uniforms", lambda indices, variant: numbers)
    padded = np.pad(few.images[:4], ((0, 0), (2, 2), (2, 2)))
    assert np.array_equal(deform(few.images[:4], np.arange(4), 1), padded[:, 3:31, 0:28])


def test_uniform_numbers_are_uniform():
    """Mean and variance of 52,000 numbers, at five standard errors: a false alarm in a million."""
    numbers = deformation._uniforms(np.arange(1000), 3)
    assert abs(numbers.mean() - 0.5) < 5 / np.sqrt(12 * numbers.size)
    assert abs(numbers.var() - 1 / 12) < 5 * np.sqrt(1 / 180 / numbers.size)
    assert abs(np.corrcoef(numbers[:-1, 0], numbers[1:, 0])[0, 1]) < 5 / np.sqrt(999)


@pytest.mark.parametrize(
    ("images", "indices", "variant", "message"),
    [
        (np.zeros((2, 28, 28)), np.arange(2), 1, "8-bit"),
        (np.zeros((2, 28, 27), np.uint8), np.arange(2), 1, r"\(n, 28, 28\)"),
        (np.zeros((2, 28, 28), np.uint8), np.arange(3), 1, "one number"),
        (np.zeros((2, 28, 28), np.uint8), np.arange(2) - 1, 1, "one number"),
        (np.zeros((2, 28, 28), np.uint8), np.arange(2), -1, "at least 0"),
    ],
)
def test_bad_images_are_refused(images, indices, variant, message):
    with pytest.raises(InputError, match=message):
        deform(images, indices, variant)
