"""Divided among four devices, streams and tasks give what they give on one: bit for bit in the same shapes."""

import os
import subprocess
import sys

import jax
import numpy as np
import pytest
from jax.sharding import Mesh

import pfbr
from pfbr.errors import InputError
from pfbr.sharding import checked_mesh, dealt, from_first, leads, mapped, num_devices, padded, whole
from tests.conftest import CHEAP_COMPILATION

ONE = Mesh(np.asarray(jax.devices()[:1]), ("x",))


def on_four_devices(which, folder, root):
    """Host devices are counted when JAX starts: a process of its own."""
    flags = " ".join([*CHEAP_COMPILATION, "--xla_force_host_platform_device_count=4"])
    command = [sys.executable, "-m", "tests.four_devices", str(folder / "found.npz"), which]
    environment = os.environ | {"XLA_FLAGS": flags}
    ended = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=1800)
    assert ended.returncode == 0, ended.stderr[-3000:]
    with np.load(folder / "found.npz") as found:
        return dict(found)


@pytest.fixture(scope="module")
def found(tmp_path_factory, root):
    return on_four_devices("quick", tmp_path_factory.mktemp("four"), root)


def part(found, name):
    return {key.removeprefix(name): value for key, value in found.items() if key.startswith(f"{name}/")}


def test_each_device_does_what_one_would_do_with_its_share(found):
    shares = np.concatenate([found[f"share/{number}/particles"] for number in range(4)])
    np.testing.assert_array_equal(found["run/four/particles"], shares)
    for name, value in part(found, "run/four").items():  # whatever the axes of the mesh are called
        np.testing.assert_array_equal(value, part(found, "run/square")[name])


def test_a_run_is_that_on_one_device_to_rounding(found):
    for name, value in part(found, "run/None").items():
        np.testing.assert_allclose(part(found, "run/four")[name], value, atol=1e-5)


def test_a_panel_is_that_on_one_device_bit_for_bit(found):
    one, four = part(found, "panel/None"), part(found, "panel/four")
    assert list(np.unique(one["/status"])) == ["moved", "not observed", "refused"]
    for name, value in one.items():
        np.testing.assert_array_equal(four[name], value)


def test_training_is_that_on_one_device_to_rounding(found):
    one, four = part(found, "fit/None"), part(found, "fit/four")
    np.testing.assert_allclose(four["/weights"], one["/weights"], atol=1e-5)
    np.testing.assert_allclose(four["/scores"], one["/scores"], atol=1e-5)
    assert not np.array_equal(one["/scores"][:1], one["/scores"][1:2])  # it did learn


@pytest.mark.slow
def test_the_default_method_is_the_same_whatever_the_number_of_devices(tmp_path, root):
    found = on_four_devices("auto", tmp_path, root)
    for name, value in part(found, "run/one").items():
        np.testing.assert_array_equal(part(found, "run/two")[name], value)
        np.testing.assert_array_equal(part(found, "run/four")[name], value)
        np.testing.assert_allclose(part(found, "run/None")[name], value, atol=1e-5)
    for what in ("frame", "panel"):
        for name, value in part(found, f"{what}/None").items():
            np.testing.assert_array_equal(part(found, f"{what}/four")[name], value)


def test_what_is_no_mesh_is_refused():
    with pytest.raises(InputError, match="make_mesh"):
        checked_mesh(4)
    with pytest.raises(InputError, match="leave it out"):
        pfbr.run(pfbr.models.GaussianMean(2), np.zeros((3, 2)), mesh="all")
    assert checked_mesh("all").size == jax.device_count()
    assert checked_mesh(None) is None
    assert num_devices(None) == 1


def test_parts_are_padded_and_dealt_in_turn():
    four = lambda: None
    four.size = 4
    assert [whole(9, four), whole(8, four), whole(3, None)] == [12, 8, 3]
    np.testing.assert_array_equal(dealt(8, four), [0, 4, 1, 5, 2, 6, 3, 7])
    filled = padded({"a": np.arange(3), "k": jax.random.split(jax.random.key(0), 3)}, 4)
    np.testing.assert_array_equal(filled["a"], [0, 1, 2, 0])
    assert filled["k"].shape == (4,)


def test_one_device_is_a_mesh_too():
    np.testing.assert_array_equal(mapped(ONE, _times, np.float32(3), np.arange(4.0, dtype=np.float32)), [0, 3, 6, 9])
    assert leads(ONE)
    assert leads(None)
    assert from_first(ONE, np.asarray(0.1)) == 0.1


def _times(shared, each):
    return shared * each
