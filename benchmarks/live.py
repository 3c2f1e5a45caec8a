"""A live stream of many lines: latency of an answer, lines a second and memory, with and without a state file.

python -m benchmarks.live [--lines 100000] [--model gaussian-mean:dim=2 …]
A child process runs `pfbr infer MODEL -`; lines are sent one at a time, the next when the last was answered. Seed 7000.
The first 200 lines are left out of the latencies: they compile.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

COMMAND = [sys.executable, "-c", "from pfbr.cli.start import main; main()"]
WARM = 200
MODELS = ("gaussian-mean:dim=2", "gaussian-mixture", "linear-dynamics:dim=2")


def resident(pid: int) -> float:
    """Megabytes of a process."""
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def cpu(pid: int) -> float:
    """CPU seconds of a process so far."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(model: str, number: int, options: list[str], label: str) -> None:
    rng = np.random.default_rng(7000)
    dim = 1 if model.startswith("gaussian-mixture") else 2
    rows = rng.normal(size=(number, dim)).tolist()
    child = subprocess.Popen(
        [*COMMAND, "infer", model, "-", *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    latency, memory, used = np.zeros(number), [], 0.0
    begun = time.perf_counter()
    for n, row in enumerate(rows):
        line = json.dumps({"n": n, "observation": row}).encode() + b"\n"
        sent = time.perf_counter()
        child.stdin.write(line)
        child.stdin.flush()
        answer = child.stdout.readline()
        latency[n] = time.perf_counter() - sent
        assert b'"stage"' in answer, answer
        if n == WARM:
            begun, used = time.perf_counter(), cpu(child.pid)
        if n in (WARM, number // 10, number // 2, number - 1):
            memory.append(f"{resident(child.pid):.0f}")
    wall, used = time.perf_counter() - begun, cpu(child.pid) - used
    child.stdin.close()
    child.wait()
    late = 1e3 * latency[WARM:]
    p50, p99, p999 = np.quantile(late, [0.5, 0.99, 0.999])
    print(
        f"{model}, {label}: {number} lines, p50 {p50:.2f} ms, p99 {p99:.2f} ms, p99.9 {p999:.2f} ms, worst "
        f"{late.max():.0f} ms; {(number - WARM) / wall:.0f} lines a second, {1e3 * used / (number - WARM):.2f} ms "
        f"CPU a line; resident MB after {WARM} lines, a tenth, a half, all: {', '.join(memory)}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--model", action="append")
    parser.add_argument("--history", type=int, default=256)
    parser.add_argument("--where", default=None, help="a folder for the state file: its disk is what is measured")
    arguments = parser.parse_args()
    for model in arguments.model or MODELS:
        options = ["--history", str(arguments.history)]
        measure(model, arguments.lines, options, "in memory")
        with tempfile.TemporaryDirectory(dir=arguments.where) as folder:
            measure(model, arguments.lines, [*options, "--state", f"{folder}/state"], "with a state file")


if __name__ == "__main__":
    main()
