"""What the general map is tested on, training has never seen."""

import re
import subprocess
import sys

from benchmarks.learned import development, testing
from pfbr.training.problems import kinds


def test_no_kind_is_in_two_places():
    names = [kind.__name__ for room in (kinds, development, testing) for kind in room.KINDS]
    assert len(names) == len(set(names)) == len(kinds.KINDS) + len(development.KINDS) + len(testing.KINDS)


def test_nothing_in_the_package_imports_a_benchmark(root):
    for path in (root / "src").rglob("*.py"):
        assert not re.search(r"^\s*(from|import) benchmarks", path.read_text(encoding="utf-8"), re.MULTILINE), path


def test_the_command_that_trains_does_not_load_them(root):
    look = (
        "import sys, benchmarks.learned.__main__, pfbr.training.general.learn; "
        "print([name for name in sys.modules if name.startswith('benchmarks.learned.')])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", look], capture_output=True, text=True, timeout=300, check=True, cwd=root
    )
    assert ended.stdout.strip() == "['benchmarks.learned.__main__']"
