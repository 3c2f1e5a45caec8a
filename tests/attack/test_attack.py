"""The attack: every case of the table keeps every promise. `python -m tests.attack` counts them, `--slow` all.

In `make test` a part of each group runs, the same every time; `make test-slow` runs all of it.
"""

from pathlib import Path

import pytest

from tests.attack.case import Case, broken
from tests.attack.table import CASES, fast


@pytest.mark.parametrize("case", [case for case in CASES if fast(case)], ids=lambda case: case.id)
def test_no_promise_is_broken(case: Case, tmp_path: Path):
    assert broken(case, tmp_path) is None


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in CASES if not fast(case)], ids=lambda case: case.id)
def test_none_of_the_rest_is(case: Case, tmp_path: Path):
    assert broken(case, tmp_path) is None


def test_the_table_is_large_and_names_each_case_once():
    assert len(CASES) >= 400
    assert len({case.id for case in CASES}) == len(CASES)
