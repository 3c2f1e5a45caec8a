"""Fixtures that several test files share: what is slow to make is made once."""

from pathlib import Path

import hypothesis
import jax
import pytest

import pfbr
from pfbr.judging import demo
from pfbr.reporting import demo_figure as figures
from pfbr.reporting import demo_page as report

# The same examples every time, and no deadline: the first call of a compiled function is slow.
hypothesis.settings.register_profile("pfbr", derandomize=True, deadline=None, max_examples=50)
hypothesis.settings.load_profile("pfbr")


@pytest.fixture(scope="session")
def root() -> Path:
    """The folder of the repository."""
    return Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def demo_settings() -> demo.DemoSettings:
    """A stream shorter than the real one's; whoever demonstrates in a test takes this one, which is compiled once."""
    return demo.DemoSettings(num_observations=6, num_particles=64, num_truth_draws=512, cells=48)


@pytest.fixture(scope="session")
def demo_directory(tmp_path_factory: pytest.TempPathFactory, demo_settings: demo.DemoSettings) -> Path:
    """A short demonstration with the training-free operator: its records, page and figures."""
    directory = tmp_path_factory.mktemp("demo")
    demo.run(pfbr.gaussian_operator(), settings=demo_settings, provenance="training-free").save(directory)
    report.demo_page(directory)
    figures.demo_figure(directory)
    return directory


@pytest.fixture
def x64():
    """Sixteen digits inside one test, for answers that are known to nine."""
    with jax.enable_x64(True):
        yield
