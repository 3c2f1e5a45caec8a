"""A prepared stream of digits on disk survives a kill, damage and other people's directories."""

import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from pfbr.errors import FileError, InputError
from pfbr.paper.digits import StreamSettings, open_stream, prepare
from pfbr.paper.digits.deformation import deform

SMALL = StreamSettings(variants=10, components=5)


@pytest.fixture(scope="module")
def prepared(few, tmp_path_factory):
    """A stream that nothing interrupted."""
    return prepare(tmp_path_factory.mktemp("stream") / "whole", settings=SMALL, digits=few, workers=2)


def contents(directory) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


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


@pytest.mark.slow
def test_a_killed_preparation_goes_on_to_the_same_bytes(few, prepared, tmp_path):
    directory = tmp_path / "killed"
    script = (
        "from pfbr.paper.digits import *; d = load_digits('train'); import time\n"
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
    shutil.copytree(prepared.directory, directory)
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
