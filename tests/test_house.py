"""The house is what docs/architecture.md draws: every file has a line, a room needs only rooms above it, and no two
files need each other. Imports are followed through package fronts: `from pfbr.models import Model` needs
models/base.py."""

import ast
import functools
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src/pfbr"
ROOMS = [
    "version",
    "typing",
    "errors",
    "checks",
    "sharding",
    "io",
    "models",
    "particles",
    "flow",
    "inference",
    "metrics",
    "training",
    "baselines",
    "scale",
    "judging",
    "reporting",
    "paper",
    "cli",
]
# The registry of method names looks rivals up lazily, by name: the one room that knows of a room below it. The front
# door opens after everything that it offers.
EXCEPTIONS = {("pfbr.inference.registry", "pfbr.baselines")}
LAZY = {"pfbr", "pfbr.cli"}  # fronts that look behind themselves only when asked
# A folder is drawn in one piece, even where a file stands between two parts of it.
BELOW = {("pfbr.paper.contract", "pfbr.paper.digits.prepared")}


def house_lines() -> list[tuple[int, str, str]]:
    """(depth, name, comment) of each line of the drawn tree."""
    block = re.search(r"```text\n(src/pfbr/\n.*?)```", (ROOT / "docs/architecture.md").read_text(), re.DOTALL)
    assert block, "docs/architecture.md has a ```text block with the tree"
    lines = []
    for line in block[1].splitlines():
        found = re.fullmatch(r"( *)(\S+)(?: {2,}(\S.*))?", line)
        assert found, f"not a line of a tree: {line!r}"
        lines.append((len(found[1]) // 2, found[2], found[3] or ""))
    return lines


@pytest.fixture(scope="module")
def tree() -> dict[str, str]:
    """Path to comment, in the order of the drawing; folders end with a slash."""
    paths: dict[str, str] = {}
    folders: list[str] = []
    for depth, name, comment in house_lines():
        del folders[depth:]
        path = "".join(folders) + name
        assert path not in paths, f"{path} is in the tree twice"
        paths[path] = comment
        if name.endswith("/"):
            folders.append(name)
    return paths


def source_files() -> list[Path]:
    return [p for p in SOURCE.rglob("*") if p.is_file() and "__pycache__" not in p.parts]


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_name(path): path for path in source_files() if path.suffix == ".py"}


@functools.cache
def parsed(module: str) -> ast.Module:
    return ast.parse(FILES[module].read_text(encoding="utf-8"))


@functools.cache
def fronts(module: str) -> dict[str, str]:
    """Where the names that a package front offers come from."""
    if FILES[module].name != "__init__.py":
        return {}
    imports = [node for node in parsed(module).body if isinstance(node, ast.ImportFrom) and node.module in FILES]
    return {alias.asname or alias.name: node.module for node in imports for alias in node.names}


def needs(module: str) -> set[str]:
    """The modules that a file names in its imports, anywhere in it; behind a front, the file that a name comes from."""
    found = set()
    for node in ast.walk(parsed(module)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name in FILES}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: imports are absolute in this house"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                if inner in FILES:
                    found.add(inner)
                elif node.module in FILES:
                    found.add(fronts(node.module).get(alias.name, node.module))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "import_module":
            named = node.args[0] if node.args else None
            if isinstance(named, ast.Constant) and named.value in FILES:
                found.add(named.value)
    return found - {module, "pfbr"}


def room(module: str) -> str:
    return module.split(".")[1]


def test_every_file_is_in_the_tree_and_every_line_of_the_tree_is_true(tree):
    drawn = {path for path in tree if path != "src/pfbr/"}
    files = {p.relative_to(ROOT).as_posix() for p in source_files() if p.name != "__init__.py" or p.parent == SOURCE}
    folders = {f"{path.rsplit('/', 1)[0]}/" for path in files} - {"src/pfbr/"}
    assert sorted((files | folders) - drawn) == [], "missing from the tree in docs/architecture.md"
    assert sorted(drawn - files - folders) == [], "in the tree, but not on disk"


def test_every_file_has_a_comment_and_opens_with_its_idea(tree):
    assert [path for path, comment in tree.items() if not comment and path != "src/pfbr/"] == []
    assert [module for module in FILES if not ast.get_docstring(parsed(module))] == []


def test_a_room_needs_only_rooms_above_it():
    wrong = [
        f"{module} needs {other}"
        for module in FILES
        if module != "pfbr"
        for other in needs(module)
        if ROOMS.index(room(other)) > ROOMS.index(room(module)) and (module, other) not in EXCEPTIONS
    ]
    assert wrong == []


def test_rooms_are_drawn_in_their_order(tree):
    tops = [path.removeprefix("src/pfbr/").rstrip("/").removesuffix(".py") for path in tree if path.count("/") <= 3]
    tops = [name for name in tops if name in ROOMS]
    assert tops == [name for name in ROOMS if name in tops]


def test_a_file_needs_only_files_above_it(tree):
    """Read from top to bottom, nothing is used before it was told; a package's front is told with its last file."""
    place = {module_name(ROOT / path): number for number, path in enumerate(tree) if path.endswith(".py")}
    for module, path in FILES.items():
        if module in LAZY:
            place[module] = -1
        elif path.name == "__init__.py":
            inside = [place[name] for name in place if name.startswith(module + ".")]
            place[module] = max(inside, default=-1) + 0.5
    wrong = [
        f"{module} needs {other}"
        for module in FILES
        if module not in LAZY
        for other in needs(module)
        if place[other] > place[module] and (module, other) not in EXCEPTIONS | BELOW
    ]
    assert wrong == []


def test_no_two_files_need_each_other():
    left = {module: needs(module) for module in FILES if module not in LAZY}
    left["pfbr.inference.registry"] = left["pfbr.inference.registry"] - {other for _, other in EXCEPTIONS}
    while free := [module for module, others in left.items() if not others & left.keys()]:
        for module in free:
            del left[module]
    assert left == {}, "these need each other, or files that do"


def test_no_file_is_too_long():
    lengths = {module: len(path.read_text(encoding="utf-8").splitlines()) for module, path in FILES.items()}
    assert {module: length for module, length in lengths.items() if length > 350} == {}


# Where the questions about a file are asked, if not in the test of its own name: where one table asks many files the
# same, or where a file is part of a larger answer. A folder ends with a dot.
ASKED_IN = {
    "baselines.": "baselines/test_contract.py",
    "cli.bench": "cli/test_commands.py",
    "errors": "cli/test_commands.py",
    "flow.transport.": "flow/transport/test_transport.py",
    "flow.velocities.": "flow/test_divergence.py",
    "inference.run_on_mesh": "test_sharding.py",
    "scale.absorbing": "scale/test_keyed.py",
    "scale.answers": "scale/test_keyed.py",
    "scale.launch": "scale/test_processes.py",
    "scale.resampling": "scale/test_particles.py",
    "scale.spark_state": "scale/test_spark.py",
    "scale.spark_work": "scale/test_spark.py",
    "inference.adaptive.": "inference/test_conditions_kalman.py",
    "inference.collocation.": "inference/collocation/test_method.py",
    "inference.core": "inference/test_session.py",
    "inference.display.looks": "inference/display/test_plots.py",
    "inference.display.svg": "inference/display/test_html.py",
    "inference.info": "inference/test_draws.py",
    "inference.method": "inference/test_session.py",
    "inference.panel.": "inference/panel/test_panel.py",
    "inference.posterior": "inference/test_draws.py",
    "inference.summaries": "inference/test_draws.py",
    "inference.pretrained.catalogue": "inference/test_golden.py",
    "inference.provenance": "inference/test_operator_file.py",
    "inference.exported_loader": "inference/test_exported.py",
    "inference.saved_parts": "inference/test_session_file.py",
    "inference.said": "inference/test_draws.py",
    "inference.saving": "inference/test_session_file.py",
    "inference.frame_trace": "inference/test_run_streams.py",
    "inference.streams": "inference/test_run_streams.py",
    "inference.tables": "inference/test_run_streams.py",
    "inference.taking_back": "inference/test_session.py",
    "inference.rows": "inference/test_session.py",
    "inference.run": "inference/test_session.py",
    "judging.bench": "cli/test_commands.py",
    "judging.calibration.order_gap": "judging/calibration/test_calibrate.py",
    "judging.demo.record": "judging/demo/test_two_modes.py",
    "judging.model_check.": "judging/model_check/test_check.py",
    "judging.stages": "judging/test_evaluate.py",
    "models.gaussian_mean": "models/test_built_in.py",
    "models.gaussian_mixture": "models/test_built_in.py",
    "models.linear_dynamics": "models/test_built_in.py",
    "models.logistic_regression": "models/test_built_in.py",
    "models.numpyro.bijection": "models/numpyro/test_static.py",
    "models.numpyro.normals": "models/numpyro/test_static.py",
    "models.numpyro.observation": "models/numpyro/test_convert.py",
    "models.numpyro.rows": "models/numpyro/test_static.py",
    "models.numpyro.signatures": "models/numpyro/test_state_space.py",
    "models.numpyro.sites": "models/numpyro/test_convert.py",
    "paper.": "paper/test_registry.py",
    "reporting.comparison_figure": "judging/test_compare.py",
    "reporting.demo_figure": "reporting/test_demo_page.py",
    "reporting.parts": "reporting/test_html.py",
    "training.general.": "training/general/test_learn.py",
    "training.objectives.base": "training/test_fit.py",
    "training.problems.": "training/problems/test_clouds.py",
    "training.state": "training/test_fit.py",
    "training.step": "training/test_fit.py",
    "typing": "conftest.py",
    "version": "packaging/test_metadata.py",
}


def test_every_file_is_tested_where_one_looks_for_it():
    tests = ROOT / "tests"
    lost = []
    for module, path in FILES.items():
        inner = module.removeprefix("pfbr.")
        own = tests.joinpath(*inner.split(".")[:-1], f"test_{path.stem}.py")
        named = [
            where for name, where in ASKED_IN.items() if inner == name or (name[-1] == "." and inner.startswith(name))
        ]
        if path.name != "__init__.py" and not own.exists() and not any((tests / where).exists() for where in named):
            lost.append(module)
    assert lost == [], "write tests/…/test_NAME.py, or say in ASKED_IN where they are asked"
    assert [name for name in ASKED_IN if name[-1] != "." and f"pfbr.{name}" not in FILES] == [], "gone"


HEAVY = [
    "typer",
    "rich",
    "matplotlib",
    "blackjax",
    "sklearn",
    "arviz",
    "narwhals",
    "numpyro",
    "pandas",
    "polars",
    "scipy.stats",
    "diffrax",
    "optax",
    "pfbr.training",
    "pfbr.baselines",
    "pfbr.scale",
    "pyspark",
    "pfbr.judging",
    "pfbr.reporting",
    "pfbr.paper",
    "pfbr.cli",
]


@pytest.mark.parametrize(
    ("script", "allowed"),
    [
        ("import pfbr", []),
        ("import pfbr; pfbr.Session(pfbr.models.GaussianMean(2), num_particles=8)", []),
    ],
    ids=["import", "session"],
)
def test_importing_is_light_and_changes_no_settings(script, allowed):
    look = (
        f"import sys, jax; before = dict(jax.config.values); {script}; "
        f"print([name for name in {HEAVY} if name in sys.modules and name not in {allowed}], "
        "dict(jax.config.values) == before)"
    )
    ended = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, timeout=300, check=True)
    assert ended.stdout.strip() == "[] True"


def test_the_longer_tests_are_there(root):
    """A test that was renamed would otherwise be quick again without anybody's asking."""
    for name in filter(None, (root / "tests" / "long.txt").read_text(encoding="utf-8").split("\n")):
        path, _, rest = name.partition("::")
        text = (root / path).read_text(encoding="utf-8")
        assert not rest or f"def {rest.partition('[')[0]}(" in text, name
