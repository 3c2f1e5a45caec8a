"""The wheel, alone in an empty environment, does what the README promises: import, update, and a demonstration."""

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

MAX_MEGABYTES = 6.0
UPDATE = """
import sys
import pfbr

session = pfbr.Session(pfbr.models.GaussianMean(dim=2))
posterior = session.update([0.1, 0.2])
assert posterior.mean().shape == (2,), posterior.mean().shape
assert "site-packages" in pfbr.__file__, pfbr.__file__
assert "typer" not in sys.modules
print(pfbr.__version__)
"""


def call(*words: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A command in a folder of its own, which finds no package but those of its environment."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run([str(word) for word in words], cwd=cwd, env=environment, capture_output=True, text=True)


def succeed(*words: str | Path, cwd: Path) -> str:
    """The output of a command that must succeed."""
    done = call(*words, cwd=cwd)
    assert done.returncode == 0, f"{words} gave {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(root, tmp_path_factory) -> Path:
    """The wheel, built from the work tree by the builder that is installed."""
    folder = tmp_path_factory.mktemp("wheel")
    succeed(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=root)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def bare(wheel, tmp_path_factory) -> Path:
    """The programs of an environment with the wheel and what it depends on, and no extra."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder / "venv", with_pip=True)
    programs = folder / "venv" / "bin"
    succeed(programs / "python", "-m", "pip", "install", "--quiet", wheel, cwd=folder)
    return programs


@pytest.fixture(scope="module")
def with_cli(wheel, bare) -> Path:
    """The same environment after the extra `cli` was added; tests of the bare one stand above its users."""
    succeed(bare / "python", "-m", "pip", "install", "--quiet", f"{wheel}[cli]", cwd=bare.parent.parent)
    return bare


def test_the_wheel_is_small_and_holds_the_marker_of_types(wheel):
    megabytes = wheel.stat().st_size / 1e6
    print(f"{wheel.name}: {megabytes:.2f} MB")
    assert megabytes < MAX_MEGABYTES
    assert "pfbr/py.typed" in zipfile.ZipFile(wheel).namelist()


def test_alone_it_imports_and_updates(bare, tmp_path):
    version = succeed(bare / "python", "-c", UPDATE, cwd=tmp_path).strip()
    assert (
        version
        == succeed(
            bare / "python", "-c", "import importlib.metadata as m; print(m.version('pfbr'))", cwd=tmp_path
        ).strip()
    )


def test_without_the_extra_the_script_says_in_one_line_what_to_install(bare, tmp_path):
    done = call(bare / "pfbr", "demo", cwd=tmp_path)
    assert done.stderr == 'error: the command line needs the extra "cli": pip install "pfbr[cli]"\n'
    assert (done.returncode, done.stdout) == (2, "")


def test_with_the_extra_it_demonstrates(with_cli, tmp_path):
    succeed(with_cli / "pfbr", "demo", "--out", tmp_path / "demo", cwd=tmp_path)
    assert (tmp_path / "demo" / "index.html").stat().st_size > 10_000
