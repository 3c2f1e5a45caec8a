"""How tests run: cheap compilation, checked shapes, bounded memory; and what several files share, made once."""

import contextlib
import ctypes
import gc
import os
from pathlib import Path

# Most of the time of a test is compilation, so that code is compiled without optimising it: in a third of the time,
# with the same numbers but for rounding. What computes for minutes is better off with `XLA_FLAGS= pytest …`. The names
# are those of the jaxlib in requirements.lock; one that does not know a flag stops at once and says so.
CHEAP_COMPILATION = (
    "--xla_backend_optimization_level=0",
    "--xla_llvm_disable_expensive_passes=true",
    "--xla_cpu_use_fusion_emitters=false",
    "--xla_cpu_parallel_codegen_split_count=1",
)
os.environ.setdefault("XLA_FLAGS", " ".join(CHEAP_COMPILATION))

import hypothesis
import jax
import jaxtyping
import pytest

from tests import typechecker

# Shapes and types are checked at run time, but for the edge, which takes anything and says what is wrong with it.
# `PFBR_CHECK_SHAPES=0` leaves that out.
SOURCE = Path(__file__).resolve().parents[1] / "src"
ROOMS = ("models", "particles", "flow", "inference", "metrics", "training", "baselines")
EDGE = {
    "pfbr.flow.settings",
    "pfbr.models.checks",
    "pfbr.models.constraints",
    "pfbr.models.numpyro.convert",
    "pfbr.models.numpyro.rows",
    "pfbr.models.numpyro.signatures",
    "pfbr.models.numpyro.static",
    "pfbr.models.numpyro.state_space",
    "pfbr.models.unknowns",
    "pfbr.inference.architectures",
    "pfbr.inference.clock",
    "pfbr.inference.core",
    "pfbr.inference.described",
    "pfbr.inference.exported",
    "pfbr.inference.exported_loader",
    "pfbr.inference.operator_file",
    "pfbr.inference.panel.panel",
    "pfbr.inference.panel.reports",
    "pfbr.inference.pretrained.catalogue",
    "pfbr.inference.registry",
    "pfbr.inference.rows",
    "pfbr.inference.run_streams",
    "pfbr.inference.tables",
    "pfbr.inference.run",
    "pfbr.inference.session",
    "pfbr.inference.saved_parts",
    "pfbr.inference.session_file",
    "pfbr.inference.to_arviz",
    "pfbr.inference.to_xarray",
    "pfbr.training.fit",
    "pfbr.training.settings",
}


def inner_modules() -> list[str]:
    files = [path for room in ROOMS for path in sorted((SOURCE / "pfbr" / room).rglob("*.py"))]
    names = [".".join(path.relative_to(SOURCE).with_suffix("").parts) for path in files if path.stem != "__init__"]
    return [name for name in names if name not in EDGE]


if os.environ.get("PFBR_CHECK_SHAPES", "1") != "0":
    jaxtyping.install_import_hook(inner_modules(), f"{typechecker.__name__}.checked")

# Tests of more than two CPU seconds, mostly of compilation, by name, or by file where one fixture is what takes long:
# `make test-long`.
LONG = frozenset((Path(__file__).parent / "long.txt").read_text(encoding="utf-8").split("\n"))


@pytest.hookimpl(tryfirst=True)  # before they are chosen by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid in LONG or item.nodeid.partition("::")[0] in LONG:
            item.add_marker(pytest.mark.long)


# The same examples every time, and no deadline: the first call of a compiled function is slow.
hypothesis.settings.register_profile("pfbr", derandomize=True, deadline=None, max_examples=50)
hypothesis.settings.load_profile("pfbr")

# bytes after a file, and after a test, at which compiled functions are dropped: a process stays below 2 GB
MOST_AFTER_FILE, MOST_AFTER_TEST = 1.2e9, 1.7e9


@pytest.fixture(scope="module", autouse=True)
def _bounded_after_a_file():
    """Compiled functions that no later file needs are let go."""
    yield
    _bound_memory(MOST_AFTER_FILE)


@pytest.fixture(autouse=True)
def _bounded_after_a_test():
    """A table of hundreds of cases, each with a model of its own, would otherwise fill the machine."""
    yield
    _bound_memory(MOST_AFTER_TEST)


def _bound_memory(most: float) -> None:
    if resident_bytes() > most:
        jax.clear_caches()
        gc.collect()
        with contextlib.suppress(OSError, AttributeError):  # what the allocator keeps for later goes back too
            ctypes.CDLL("libc.so.6").malloc_trim(0)


def resident_bytes() -> float:
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # not Linux: rather too often than never
        return float("inf")


@pytest.fixture(scope="session")
def root() -> Path:
    """The folder of the repository."""
    return Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def demo_settings():
    """A stream shorter than the real one's; whoever demonstrates in a test takes this one, which is compiled once."""
    from pfbr.judging.demo.two_modes import TwoModesSettings

    return TwoModesSettings(num_observations=6, num_particles=64, num_truth_draws=512, cells=48)


@pytest.fixture(scope="session")
def demo_directory(tmp_path_factory: pytest.TempPathFactory, demo_settings) -> Path:
    """A short demonstration with the training-free operator: its records, page and figures."""
    import pfbr
    from pfbr.judging.demo import two_modes
    from pfbr.reporting.demo_figure import demo_figure
    from pfbr.reporting.demo_page import demo_page

    directory = tmp_path_factory.mktemp("demo")
    two_modes.run(pfbr.gaussian_operator(), settings=demo_settings, provenance="training-free").save(directory)
    demo_page(directory)
    demo_figure(directory)
    return directory


@pytest.fixture
def x64():
    """Sixteen digits inside one test, for answers that are known to nine."""
    with jax.enable_x64(True):
        yield
