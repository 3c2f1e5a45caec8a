"""An operator survives the disk bit for bit; a file that is not whole, or not ours, is refused with a reason."""

import errno
import json
import os
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import numpy as jnp

import pfbr
from pfbr.errors import FileError, InputError, PfbrError
from pfbr.models import GaussianMean
from pfbr.models.simulate import simulate
from pfbr.training import TrainingSettings

MODEL = GaussianMean(2)
SETTINGS = TrainingSettings(
    steps=2,
    num_particles=8,
    length=2,
    batch=1,
    validate_every=1,
    validation_tasks=1,
    learning_rate=0.02,
    objective="elbo",
)
ARCHITECTURES = {"residual": {"width": 5, "num_features": 3, "steps": 2}, "paper": {"width": 5, "steps": 1}}


def train(folder, name):
    """An operator after two steps, on disk, with the checkpoint of its training."""
    operator, _ = pfbr.fit(
        jax.random.key(3),
        MODEL,
        operator=name,
        architecture=ARCHITECTURES[name],
        settings=SETTINGS,
        checkpoint=folder / f"{name}.checkpoint",
        progress=False,
    )
    pfbr.save(folder / f"{name}.pfbr", operator)
    return operator


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("operators")
    return folder, {"paper": train(folder, "paper")}


@pytest.fixture
def both(trained, name):
    """The residual operator takes longer to compile: only the slow tests ask for it."""
    folder, operators = trained
    if name not in operators:
        operators[name] = train(folder, name)
    return trained


NAMES = ["paper", pytest.param("residual", marks=pytest.mark.slow)]


@pytest.mark.parametrize("name", NAMES)
def test_an_operator_comes_back_as_it_was(name, both):
    folder, operators = both
    loaded = pfbr.load(folder / f"{name}.pfbr")
    assert eqx.tree_equal(loaded, operators[name])
    assert loaded.provenance == operators[name].provenance
    observations = simulate(jax.random.key(0), MODEL, 3).observations
    results = [pfbr.run(jax.random.key(1), o, MODEL, observations, num_particles=8) for o in (operators[name], loaded)]
    assert eqx.tree_equal(*results)
    again = folder / "again.pfbr"
    pfbr.save(again, loaded)
    assert again.read_bytes() == (folder / f"{name}.pfbr").read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_two_lines_say_how_it_was_made(name, both):
    folder, _ = both
    path = folder / f"{name}.pfbr"
    first, second, *_ = path.read_bytes().split(b"\n")
    assert first.startswith(b"pfbr-operator 1 ")
    header = json.loads(second)
    assert header["architecture"]["name"] == name
    assert header["architecture"]["dim"] == 2
    assert ARCHITECTURES[name].items() <= header["architecture"]["settings"].items()
    assert header["settings"]["learning_rate"] == 0.02
    assert header["seed"] == np.asarray(jax.random.key_data(jax.random.key(3))).tolist()
    assert header["version"] == pfbr.__version__
    assert header["model"] == "pfbr.models.gaussian_mean.GaussianMean"
    assert [entry["step"] for entry in header["history"]] == [0, 1, 2]
    assert header["validation_score"] == min(entry["score"] for entry in header["history"])
    shown = pfbr.read_header(path)
    assert shown["seed"] == header["seed"]
    assert shown["validation_score"] == header["validation_score"]


def refused(path, content, match=None):
    path.write_bytes(content)
    with pytest.raises(FileError, match=match) as caught:
        pfbr.load(path)
    assert str(path) in str(caught.value)


def test_a_file_cut_short_is_refused(trained):
    folder, _ = trained
    content = (folder / "paper.pfbr").read_bytes()
    lines = [len(content.split(b"\n")[0]), content.index(b"\n", 100)]
    for length in (0, 1, 5, 40, *lines, lines[0] + 1, lines[1] + 1, len(content) // 2, len(content) - 1):
        refused(folder / "cut.pfbr", content[:length])
    refused(folder / "cut.pfbr", content + b"\0", "checksum")


@given(where=st.floats(0, 1, exclude_max=True), change=st.integers(1, 255))
def test_a_changed_byte_is_noticed(trained, where, change):
    folder, _ = trained
    content = bytearray((folder / "paper.pfbr").read_bytes())
    content[int(where * len(content))] ^= change
    refused(folder / "flipped.pfbr", bytes(content))


def test_every_bit_of_the_first_line_counts(trained):
    folder, _ = trained
    content = (folder / "paper.pfbr").read_bytes()
    for index in range(content.index(b"\n") + 1):
        for bit in range(8):
            changed = bytearray(content)
            changed[index] ^= 1 << bit
            refused(folder / "flipped.pfbr", bytes(changed))


def test_what_is_not_an_operator_is_refused_with_the_reason(trained, tmp_path):
    folder, _ = trained
    refused(tmp_path / "picture.pfbr", b"\x89PNG\r\n\x1a\n" + bytes(100), "not a pfbr")
    refused(tmp_path / "text.pfbr", b"hello\n", "not a pfbr")
    newer = (folder / "paper.pfbr").read_bytes().replace(b"pfbr-operator 1 ", b"pfbr-operator 2 ")
    refused(tmp_path / "newer.pfbr", newer, "newer.*update")
    with pytest.raises(FileError, match="pfbr-checkpoint"):
        pfbr.load(folder / "paper.checkpoint")
    with pytest.raises(FileError, match="no file"):
        pfbr.load(tmp_path / "missing.pfbr")
    with pytest.raises(FileError, match="cannot read"):
        pfbr.load(tmp_path)
    with pytest.raises(FileError):
        pfbr.read_header(tmp_path / "missing.pfbr")


def test_a_damaged_checkpoint_is_not_resumed(trained):
    folder, _ = trained
    content = (folder / "paper.checkpoint").read_bytes()
    (folder / "damaged.checkpoint").write_bytes(content[:-4])
    with pytest.raises(FileError, match="checksum"):
        resumed(folder / "damaged.checkpoint")
    with pytest.raises(FileError, match="pfbr-operator"):
        resumed(folder / "paper.pfbr")


def resumed(path):
    return pfbr.fit(
        jax.random.key(3),
        MODEL,
        operator="paper",
        architecture=ARCHITECTURES["paper"],
        settings=SETTINGS,
        checkpoint=path,
        resume=True,
        progress=False,
    )


@pytest.mark.parametrize("broken", ["replace", "fsync"])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(broken, trained, tmp_path, monkeypatch):
    _, operators = trained
    path = tmp_path / "kept.pfbr"
    pfbr.save(path, operators["paper"])
    before = path.read_bytes()

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, broken, full)
        with pytest.raises(OSError, match="No space"):
            pfbr.save(path, operators["paper"])
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["kept.pfbr"]


def test_what_cannot_be_written_is_said_before(trained, tmp_path):
    _, operators = trained
    with pytest.raises(FileError, match="does not exist"):
        pfbr.save(tmp_path / "nowhere" / "a.pfbr", operators["paper"])
    for wrong in (pfbr.gaussian_operator(), "operator", None, jnp.zeros(2)):
        with pytest.raises(PfbrError, match=r"pfbr\.fit") as caught:
            pfbr.save(tmp_path / "a.pfbr", wrong)
        assert isinstance(caught.value, InputError)
    assert list(tmp_path.iterdir()) == []


def test_no_file_can_run_code(root):
    """Reading is bytes, JSON and numbers; nothing that could execute what it reads."""
    for path in Path(root, "src", "pfbr").rglob("*.py"):
        text = path.read_text()
        for word in ("import pickle", "allow_pickle=True", "cloudpickle", "marshal", "joblib.load"):
            assert word not in text, path
