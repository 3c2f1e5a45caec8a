"""What an installer reads: one version, the extras by their names, and that our types may be trusted."""

import importlib.metadata
import re
import tomllib

import pytest
from hatchling.builders.wheel import WheelBuilder

import pfbr

CORE = {"jax", "equinox", "diffrax", "optax", "jaxtyping", "numpy"}
EXTRAS = {
    "cli": {"typer", "rich", "matplotlib"},
    "frames": {"pandas", "polars", "narwhals", "pyarrow"},
    "numpyro": {"numpyro"},
    "rivals": {"blackjax", "scikit-learn", "scipy"},
    "arviz": {"arviz"},
    "export": {"flatbuffers"},
    "spark": {"pyspark", "pandas", "pyarrow", "protobuf"},
    "docs": {"mkdocs-material", "mkdocstrings"},
}


def names(requirements: list[str]) -> set[str]:
    """The distributions that requirements ask for, without versions and extras."""
    return {re.match(r"[A-Za-z0-9_.-]+", requirement)[0].lower() for requirement in requirements}


@pytest.fixture(scope="module")
def project(root) -> dict:
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_version_is_the_same_in_the_metadata_and_in_the_package(project):
    assert importlib.metadata.version("pfbr") == pfbr.__version__
    assert "version" not in project, "the version has one place, src/pfbr/version.py"


def test_the_core_needs_six_libraries(project):
    assert names(project["dependencies"]) == CORE


def test_each_extra_brings_what_it_says(project):
    extras = project["optional-dependencies"]
    assert {name: names(extras[name]) for name in EXTRAS} == EXTRAS
    assert set(extras) == {*EXTRAS, "dev"}
    assert "pfbr[cli,frames,numpyro,rivals,arviz,export]" in extras["dev"]


def test_the_installed_metadata_has_the_same_extras(project):
    declared = importlib.metadata.metadata("pfbr").get_all("Provides-Extra")
    assert set(declared) == set(project["optional-dependencies"])


def test_the_wheel_ships_the_marker_of_types(root):
    shipped = {file.distribution_path for file in WheelBuilder(str(root)).recurse_included_files()}
    assert {"pfbr/py.typed", "pfbr/__init__.py", "pfbr/cli/start.py"} <= shipped


def test_every_file_of_the_lock_has_a_hash_and_no_address(root):
    for path in root.glob("requirements*.lock"):
        text = path.read_text(encoding="utf-8")
        entries = re.split(r"\n(?=[a-z0-9])", "\n".join(line for line in text.splitlines() if line[:1] != "#"))
        assert len(entries) > 10, path.name
        assert [entry.split()[0] for entry in entries if "--hash=sha256:" not in entry] == [], path.name
        assert "://" not in text, path.name
        assert "index-url" not in text, path.name
