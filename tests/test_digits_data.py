"""The digits: deformations that can be made again, principal components from a stream, files that survive anything."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from typer.testing import CliRunner

from pfbr.cli import app
from pfbr.errors import FileError, InputError
from pfbr.paper.digits import (
    Digits,
    Reduction,
    StreamSettings,
    deformation,
    load_digits,
    open_stream,
    prepare,
    shipped_reduction,
)
from pfbr.paper.digits.deformation import deform
from pfbr.paper.digits.reduction import Moments, as_vectors, fit_reduction, with_intercept

SMALL = StreamSettings(variants=10, components=5)


@pytest.fixture(scope="module")
def few() -> Digits:
    digits = load_digits("train")
    return Digits(digits.images[:150], digits.labels[:150])


@pytest.fixture(scope="module")
def prepared(few, tmp_path_factory):
    """A stream that nothing interrupted."""
    return prepare(tmp_path_factory.mktemp("stream") / "whole", settings=SMALL, digits=few, workers=2)


def contents(directory) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_the_package_holds_all_sixes_and_eights():
    train, test = load_digits("train"), load_digits("test")
    assert train.images.shape == (11769, 28, 28)
    assert test.images.shape == (1932, 28, 28)
    assert (int(train.labels.sum()), int(test.labels.sum())) == (5851, 974)  # eights, by the official counts
    assert not train.images.flags.writeable
    with pytest.raises(InputError, match="train, test"):
        load_digits("validation")


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


def test_components_are_those_of_a_dense_decomposition(few):
    vectors = as_vectors(few.images)
    parts = [Moments.of(vectors[:40]), Moments.of(vectors[40:41]), Moments.of(vectors[41:])]
    moments = Moments.none(784).plus(parts[0]).plus(parts[1]).plus(parts[2])
    reduction = fit_reduction(moments, 6)
    centred = vectors.astype(float) - vectors.mean(axis=0)
    _, values, dense = np.linalg.svd(centred, full_matrices=False)
    assert np.allclose(reduction.scale, values[:6] / np.sqrt(150), rtol=1e-4)
    overlap = np.abs(np.sum(dense[:6].T * reduction.components, axis=0))
    assert np.allclose(overlap, 1, atol=1e-4)
    assert np.isclose(reduction.share, np.sum(values[:6] ** 2) / np.sum(values**2), rtol=1e-4)
    features = reduction.features(few.images)
    assert np.allclose(features.mean(axis=0), 0, atol=1e-4)
    assert np.allclose(features.T @ features / 150, np.eye(6), atol=1e-3)
    assert np.array_equal(with_intercept(features)[:, -1], np.ones(150))


def test_components_need_a_sensible_number(few):
    moments = Moments.of(as_vectors(few.images))
    with pytest.raises(InputError, match="num_components"):
        fit_reduction(moments, 785)
    with pytest.raises(InputError, match="at least two"):
        fit_reduction(Moments.none(784), 5)
    with pytest.raises(InputError, match="784 pixels"):
        fit_reduction(moments, 5).features(np.zeros((1, 10), np.uint8))


def test_the_stream_holds_standardised_features_of_every_variant(few, prepared):
    assert prepared.num_images == 1500
    everything = np.concatenate([prepared.features(v) for v in range(10)])
    assert everything.shape == (1500, 5)
    assert np.allclose(everything.mean(axis=0), 0, atol=1e-3)
    assert np.allclose(everything.var(axis=0), 1, atol=1e-3)
    third = prepared.reduction.features(deform(few.images, np.arange(150), 3))
    assert np.allclose(prepared.features(3), third, atol=1e-5)
    with pytest.raises(InputError, match=r"0 … 9"):
        prepared.features(10)


@pytest.mark.parametrize("stop_after", [9, 12])
def test_an_interrupted_preparation_goes_on_to_the_same_bytes(few, prepared, tmp_path, stop_after):
    """Stopped in the first pass (after the moments were saved), and in the second."""
    calls = 0

    def interrupt(*_):
        nonlocal calls
        calls += 1
        if calls == stop_after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare(tmp_path / "s", settings=SMALL, digits=few, workers=1, progress=interrupt)
    with pytest.raises(FileError, match="not finished"):
        open_stream(tmp_path / "s", digits=few)
    prepare(tmp_path / "s", settings=SMALL, digits=few, workers=1)
    assert contents(tmp_path / "s") == contents(prepared.directory)


def test_a_killed_preparation_goes_on_to_the_same_bytes(few, prepared, tmp_path):
    directory = tmp_path / "killed"
    script = (
        "from pfbr.data import *; d = load_digits('train'); import time\n"
        f"prepare({str(directory)!r}, settings=StreamSettings(variants=10, components=5), workers=1, "
        "digits=Digits(d.images[:150], d.labels[:150]), progress=lambda *_: time.sleep(0.1))"
    )
    process = subprocess.Popen([sys.executable, "-c", script])
    deadline = time.monotonic() + 60
    while not (directory / "variant-001.pfbr").is_file() and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert (directory / "variant-001.pfbr").is_file()
    prepare(directory, settings=SMALL, digits=few, workers=1)
    left = {name: content for name, content in contents(directory).items() if not name.endswith(".part")}
    assert left == contents(prepared.directory)


@pytest.mark.parametrize("damage", ["cut", "flipped", "foreign"])
def test_damage_is_noticed_and_repaired(few, prepared, tmp_path, damage):
    directory = tmp_path / "s"
    prepare(directory, settings=SMALL, digits=few)
    path = directory / "variant-004.pfbr"
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[-100] ^= 1
    path.write_bytes({"cut": whole[:-1], "flipped": bytes(flipped), "foreign": b"hello"}[damage])
    with pytest.raises(FileError, match=r"damaged|not a pfbr"):
        open_stream(directory, digits=few).features(4)
    prepare(directory, settings=SMALL, digits=few)
    assert contents(directory) == contents(prepared.directory)


def test_a_directory_is_for_one_stream(few, prepared, tmp_path):
    with pytest.raises(FileError, match=r"other settings \(components\)"):
        prepare(prepared.directory, settings=StreamSettings(variants=10, components=4), digits=few)
    with pytest.raises(FileError, match="other images"):
        open_stream(prepared.directory)
    with pytest.raises(FileError, match="pfbr data mnist8m"):
        open_stream(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="is a file"):
        prepare(tmp_path / "file", settings=SMALL, digits=few)
    for wrong in ({"variants": 0}, {"components": 0}):
        with pytest.raises(InputError, match="at least 1"):
            StreamSettings(**wrong)


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
    reduction = fit_reduction(Moments.of(as_vectors(few.images)), 3)
    reduction.save(tmp_path / "r.pfbr")
    assert np.array_equal(Reduction.load(tmp_path / "r.pfbr").features(few.images), reduction.features(few.images))


def test_the_command_prepares_and_draws_a_sheet(tmp_path):
    runner = CliRunner()
    done = runner.invoke(app, ["data", "mnist8m", "--out", str(tmp_path / "m"), "--variants", "2", "--workers", "1"])
    assert done.exit_code == 0, done.output
    assert "23,538 images" in done.output
    assert open_stream(tmp_path / "m").features(1).shape == (11769, 50)
    assert (tmp_path / "m" / "sheet.png").stat().st_size > 10_000
    wrong = runner.invoke(app, ["data", "cifar", "--out", str(tmp_path / "c")])
    assert wrong.exit_code == 2
    assert "there is no data set 'cifar'" in wrong.output
