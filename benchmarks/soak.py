"""A long run: live lines one by one, then updates in chunks; memory, latency, log evidence, drift against Kalman.

    python benchmarks/soak.py --lines 100000 --updates 1000000

The stream is a linear system with Gaussian noise, whose posterior Kalman's recursion gives in float64. Prints a line
after every tenth: resident memory, latency, and the distance from Kalman.
"""

import argparse
import io
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import jax
import numpy as np

import pfbr
from pfbr.cli.desk import Desk
from pfbr.cli.live import answer
from pfbr.models import LinearDynamics

CHUNK = 10_000


def simulated(model: LinearDynamics, length: int, seed: int) -> np.ndarray:
    """Observations in float64, rounded once to what a stream would hold."""
    rng = np.random.default_rng(seed)
    A, B = np.asarray(model.A, np.float64), np.asarray(model.B, np.float64)
    x, found = rng.normal(size=A.shape[0]), np.empty((length, B.shape[0]))
    for stage in range(length):
        x = A @ x + rng.normal(size=A.shape[0])
        found[stage] = B @ x + rng.normal(size=B.shape[0])
    return found.astype(np.float32).astype(np.float64)


def kalman(model: LinearDynamics, observations: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means (T, d), covariance at the end (d, d), and the log evidence so far (T,), all in float64."""
    A, B = np.asarray(model.A, np.float64), np.asarray(model.B, np.float64)
    d, k = A.shape[0], B.shape[0]
    mean, cov = np.zeros(d), np.eye(d)
    means, gained = np.empty((len(observations), d)), np.empty(len(observations))
    settled = False  # the covariance does not depend on the data, and soon stands still
    for stage, o in enumerate(observations):
        if not settled:
            before = cov
            predicted = A @ cov @ A.T + np.eye(d)
            seen = B @ predicted @ B.T + np.eye(k)
            inverse, log_det = np.linalg.inv(seen), np.linalg.slogdet(seen)[1]
            gain = predicted @ B.T @ inverse
            cov = (np.eye(d) - gain @ B) @ predicted
            settled = bool(np.max(np.abs(cov - before)) < 1e-15)
        mean = A @ mean
        miss = o - B @ mean
        gained[stage] = -0.5 * (miss @ inverse @ miss + log_det + k * np.log(2 * np.pi))
        mean = mean + gain @ miss
        means[stage] = mean
    return means, cov, np.cumsum(gained)


class Answers(io.TextIOBase):
    """Where the answers go: keeps the last one, and the time of each."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.last = ""

    def write(self, text: str) -> int:
        self.times.append(time.perf_counter())
        self.last = text
        return len(text)


def resident() -> float:
    """Megabytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def sd_apart(mean: np.ndarray, truth: np.ndarray, cov: np.ndarray) -> float:
    """Mahalanobis distance over √d."""
    off = np.asarray(mean, np.float64) - truth
    return float(np.sqrt(off @ np.linalg.inv(cov) @ off / len(off)))


def live(model: LinearDynamics, observations: np.ndarray, particles: int) -> None:
    """Lines of JSON through `pfbr infer SPEC -`, as the command answers them."""
    means, cov, evidence = kalman(model, observations)
    desk, answers = Desk(model, {"num_particles": particles}), Answers()
    tenth = max(len(observations) // 10, 1)
    print(f"live: {len(observations)} lines, {particles} particles", flush=True)

    def lines() -> Iterator[str]:
        asked: list[float] = []
        for stage, o in enumerate(observations):
            if stage and stage % tenth == 0:
                _report(stage, asked[-tenth:], answers, means, cov, evidence)
            asked.append(time.perf_counter())
            yield json.dumps(o.tolist())
        _report(len(observations), asked[-tenth:], answers, means, cov, evidence)

    answer(desk, lines(), answers)


def _report(stage, asked, answers, means, cov, evidence) -> None:
    said = json.loads(answers.last)
    taken = 1e3 * (np.asarray(answers.times[-len(asked) :]) - np.asarray(asked))
    apart = sd_apart(np.asarray(said["mean"]), means[stage - 1], cov)
    off = said["info"]["log_evidence"] - evidence[stage - 1]
    print(
        f"  {stage:>8} lines: {resident():7.1f} MB, p50 {np.median(taken):.3f} ms, "
        f"p99 {np.percentile(taken, 99):.3f} ms, mean {apart:.4f} sd from Kalman's, "
        f"log evidence {off:+.4f} of {evidence[stage - 1]:.1f}",
        flush=True,
    )


def chunks(model: LinearDynamics, observations: np.ndarray, particles: int) -> None:
    """The same through `session.update_many`, a chunk at a time."""
    means, cov, evidence = kalman(model, observations)
    session = pfbr.Session(model, num_particles=particles, undo=0)
    print(f"chunks: {len(observations)} updates, {particles} particles", flush=True)
    began, tenth = time.process_time(), max(len(observations) // 10, CHUNK)
    worst = 0.0
    for start in range(0, len(observations), CHUNK):
        trace = session.update_many(observations[start : start + CHUNK])
        found = np.asarray(trace.mean(), np.float64)
        off = found - means[start : start + len(found)]
        if start:  # the covariance has settled
            each = np.sqrt(np.einsum("ti,ij,tj->t", off, np.linalg.inv(cov), off) / off.shape[1])
            worst = max(worst, float(each.max()))
        stage = start + len(found)
        if stage % tenth == 0:
            apart = sd_apart(found[-1], means[stage - 1], cov)
            gap = session.log_evidence - evidence[stage - 1]
            print(
                f"  {stage:>8} updates: {resident():7.1f} MB, {1e6 * (time.process_time() - began) / stage:.1f} µs "
                f"of CPU each, mean {apart:.4f} sd from Kalman's (worst {worst:.4f}), log evidence {gap:+.4f} of "
                f"{evidence[stage - 1]:.1f}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--updates", type=int, default=1_000_000)
    parser.add_argument("--particles", type=int, default=256)
    parser.add_argument("--seed", type=int, default=20)
    given = parser.parse_args()
    model = LinearDynamics.random(0, 2)
    print(f"pfbr {pfbr.__version__}, jax {jax.__version__}, seed {given.seed}", flush=True)
    began = time.process_time()
    if given.lines:
        live(model, simulated(model, given.lines, given.seed), given.particles)
    if given.updates:
        chunks(model, simulated(model, given.updates, given.seed + 1), given.particles)
    print(f"{time.process_time() - began:.0f} CPU s in all", flush=True)


if __name__ == "__main__":
    main()
