"""How many cases are tried, and how many break a promise: `python -m tests.attack [--slow] [WORD…]`."""

import os
import resource
import signal
import sys
import tempfile
import time
from pathlib import Path

os.environ["PFBR_CHECK_SHAPES"] = "0"  # users go without

from tests import conftest  # noqa: F401 - cheap compilation, as in the tests
from tests.attack.case import broken

MEMORY = 16 * 2**30  # bytes: what takes more is an error of its own, not the end of the machine


def _too_long(*_: object) -> None:
    raise TimeoutError("took too long")


def main(words: list[str]) -> int:
    from tests.attack.table import GROUPS

    slow, wanted = "--slow" in words, [word for word in words if not word.startswith("--")]
    failed_in_all = 0
    for group, cases in GROUPS.items():
        chosen = [c for c in cases if (slow or not c.slow) and (not wanted or any(w in c.id for w in wanted))]
        failed, began = 0, time.process_time()
        for case in chosen:
            with tempfile.TemporaryDirectory() as directory:
                signal.alarm(300 if case.slow else 40)
                found = broken(case, Path(directory))
                signal.alarm(0)
            if found is not None:
                failed += 1
                print(f"BROKEN {case.id}: {found}", flush=True)
        seconds = time.process_time() - began
        print(f"GROUP {group}: {len(chosen)} tried, {failed} broken, {seconds:.1f} CPU s", flush=True)
        failed_in_all += failed
    return failed_in_all


if __name__ == "__main__":
    os.environ.setdefault("COLUMNS", "200")
    signal.signal(signal.SIGALRM, _too_long)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    sys.exit(min(main(sys.argv[1:]), 100))
