"""What more cores bring, and what a keyed stream costs: training in one process and in two, a million particles on one
device and on two, updates a second of a core, bytes a key.

python -m benchmarks.scale [train|particles|keyed|bytes ...]    (all without an argument)
Each process has one thread. Wall time is told where the machine is free for it; CPU seconds are those of the busiest
process, which is what its wall time would be on a core of its own. Seeds: 7000 for data, 0 for particles.
"""

import json
import os
import socket
import subprocess
import sys
import time
from typing import Any

ONE_THREAD = "--xla_cpu_multi_thread_eigen=false"
SIZES = {"small": (2, 64, 3, 20), "large": (10, 256, 10, 6)}  # unknowns, particles, rows, steps


def train() -> None:
    """Strong: eight tasks a step in all. Weak: eight a process."""
    for size, (dim, num_particles, length, steps) in SIZES.items():
        print(
            f"training, {size} tasks: the paper's operator, width 16, two steps of the solver; linear system, "
            f"d = {dim}, {num_particles} particles, {length} rows; {steps} steps"
        )
        single = _processes(1, 8, size)
        rows = [
            ("one process, 8 tasks", single),
            ("two, 8 (strong)", _processes(2, 8, size)),
            ("two, 16 (weak)", _processes(2, 16, size)),
        ]
        for name, (wall, cpu, _) in rows:
            gain = single[1] * (2 if "weak" in name else 1) / cpu
            print(f"  {name:22s} {1e3 * wall:7.1f} ms wall, {1e3 * cpu:7.1f} ms CPU a step; speed-up by CPU {gain:.2f}")
        print(f"  gradients exchanged: {4 * single[2]} bytes a task", flush=True)


def _processes(number: int, batch: int, size: str) -> tuple[float, float, int]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "benchmarks.scale", "_train", str(port), str(number), str(batch), size]
    environment = os.environ | {"XLA_FLAGS": ONE_THREAD}
    started = [
        subprocess.Popen([*command, str(process)], env=environment, stdout=subprocess.PIPE, text=True)
        for process in range(number)
    ]
    said = [json.loads(one.communicate()[0].strip().splitlines()[-1]) for one in started]
    return max(one["wall"] for one in said), max(one["cpu"] for one in said), said[0]["weights"]


def _train(port: str, number: str, batch: str, size: str, process: str) -> None:
    import equinox as eqx
    import jax
    from jax import numpy as jnp

    from pfbr.inference.architectures import build, choose
    from pfbr.models import LinearDynamics
    from pfbr.scale.processes import join
    from pfbr.sharding import checked_mesh
    from pfbr.training.objectives.elbo import ElboObjective
    from pfbr.training.settings import TrainingSettings
    from pfbr.training.step import optimiser, train_step
    from pfbr.training.tasks import ModelFamily

    if int(number) > 1:
        join(f"127.0.0.1:{port}", int(number), int(process))
    mesh = checked_mesh("all") if int(number) > 1 else None
    dim, num_particles, length, steps = SIZES[size]
    model = LinearDynamics.random(1, dim)
    settings = TrainingSettings(steps=steps, num_particles=num_particles, length=length, batch=int(batch))
    operator = build(jax.random.key(0), choose("paper", model, width=16, steps=2))
    weights = eqx.filter(operator, eqx.is_inexact_array)
    memory, objective = optimiser(settings).init(weights), ElboObjective(ModelFamily(model), settings)
    took: Any = None
    for step in range(steps + 2):
        if step == 2:  # two to compile and warm up
            took = time.perf_counter(), time.process_time()
        key = jax.random.fold_in(jax.random.key(7000), step)
        operator, memory, loss, _ = train_step(key, objective, operator, memory, jnp.asarray(1e-3), mesh)
        loss.block_until_ready()
    wall, cpu = (time.perf_counter() - took[0]) / steps, (time.process_time() - took[1]) / steps
    count = sum(leaf.size for leaf in jax.tree.leaves(weights))
    print(json.dumps({"wall": wall, "cpu": cpu, "weights": count}), flush=True)


def particles() -> None:
    """A linear system in four dimensions, resampled at nearly every step."""
    print("one set of 1,000,000 particles, linear system d = 4, ten observations")
    for devices in (1, 2):
        flags = f"{ONE_THREAD} --xla_force_host_platform_device_count={devices}"
        subprocess.run(
            [sys.executable, "-m", "benchmarks.scale", "_particles"], env=os.environ | {"XLA_FLAGS": flags}, check=True
        )


def _particles() -> None:
    import jax
    import numpy as np

    import pfbr
    from pfbr.metrics.truth import exact
    from pfbr.models import LinearDynamics
    from pfbr.scale.particles import ShardedSMC, moments

    model, method = LinearDynamics.random(1, 4, scale=0.5), ShardedSMC()
    rows = np.random.default_rng(7000).normal(size=(10, 4)).astype(np.float32)
    state = jax.jit(lambda key: pfbr.init(key, method, model, num_particles=1_000_000))(jax.random.key(0))
    step = jax.jit(lambda key, state, row: pfbr.step(key, method, model, state, row))
    jax.block_until_ready(step(jax.random.key(1), state, rows[0]))
    wall, cpu = time.perf_counter(), time.process_time()
    for place, row in enumerate(rows):
        state, info = step(jax.random.fold_in(jax.random.key(1), place), state, row)
    jax.block_until_ready(state)
    wall, cpu = (time.perf_counter() - wall) / len(rows), (time.process_time() - cpu) / len(rows)
    truth = jax.tree.map(lambda leaf: np.asarray(leaf[-1]), exact(model, rows))
    off = np.abs(np.asarray(moments(method, state.own).mean) - truth.mean) / np.sqrt(np.diag(truth.cov))
    evidence = abs(float(info.log_evidence) - float(truth.log_evidence))
    print(
        f"  {method.mesh.size} device(s): {wall:.3f} s wall, {cpu:.3f} s CPU an observation; mean off by "
        f"{off.max():.4f} sd, log evidence by {evidence:.4f}; ESS {float(info.ess):.0f}"
    )


def keyed() -> None:
    """Keys one after the other, as a worker gets them: bytes in, rows, bytes out."""
    subprocess.run(
        [sys.executable, "-m", "benchmarks.scale", "_keyed"], env=os.environ | {"XLA_FLAGS": ONE_THREAD}, check=True
    )


def _keyed() -> None:
    import numpy as np

    from benchmarks.panel import Track
    from pfbr.scale.answers import Answers
    from pfbr.scale.keyed import Keyed, KeyedSettings

    rng, model, keys = np.random.default_rng(7000), Track(), 40
    print("keyed streams: position and velocity in the plane (d = 4), Student's t noise, 64 particles")
    for method in ("smc", "auto"):
        one = Keyed(model, KeyedSettings(method=method), Answers(model))
        held: dict[int, bytes | None] = dict.fromkeys(range(keys))
        now = 0.0
        for length in (1, 8, 50):
            taken = []
            for _ in range(3):  # the first begins, the second opens bytes: both compile
                cpu = time.process_time()
                for key in range(keys):
                    rows = rng.normal(size=(length, 2)).cumsum(axis=0)
                    held[key], _ = one.update(key, held[key], rows, now + np.arange(1.0, length + 1))
                now += length
                taken.append(time.process_time() - cpu)
            each = taken[-1] / keys
            size = np.mean([len(content) for content in held.values() if content is not None])
            print(
                f"  {method:5s} {length:3d} rows a key: {1e3 * each:7.2f} ms CPU a key, {length / each:8.0f} updates a "
                f"CPU second; {size:.0f} bytes a key"
            )


def bytes_() -> None:
    """What the state of a key takes, by particles and dimension, after 10, 100 and 300 rows."""
    subprocess.run(
        [sys.executable, "-m", "benchmarks.scale", "_bytes"], env=os.environ | {"XLA_FLAGS": ONE_THREAD}, check=True
    )


def _bytes() -> None:
    import numpy as np

    from pfbr.models import LinearDynamics
    from pfbr.scale.answers import Answers
    from pfbr.scale.keyed import Keyed, KeyedSettings

    print("bytes of a key: method smc, linear system")
    rng = np.random.default_rng(7000)
    for dim in (1, 4, 16):
        model = LinearDynamics(0.9 * np.eye(dim), np.eye(dim))
        for number in (64, 256):
            for undo in (0, 4):
                one = Keyed(model, KeyedSettings(method="smc", num_particles=number, undo=undo), Answers(model))
                content, _ = one.update("a", None, rng.normal(size=(10, dim)), np.arange(10.0))
                raw = 4 * number * (dim + 1)
                print(
                    f"  d = {dim:2d}, {number:3d} particles, undo {undo}: {len(content or b''):6d} bytes "
                    f"(particles and weights alone {raw})"
                )


PARTS = {"train": train, "particles": particles, "keyed": keyed, "bytes": bytes_}
INNER = {"_train": _train, "_particles": _particles, "_keyed": _keyed, "_bytes": _bytes}

if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] in INNER:
        INNER[sys.argv[1]](*sys.argv[2:])
    else:
        for part in sys.argv[1:] or PARTS:
            PARTS[part]()
