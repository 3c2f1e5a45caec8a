"""Ten thousand streams in one panel: time and memory of a report, the share that is moved, and as many sessions beside.

python -m benchmarks.panel [--streams 10000] [--rounds 20] [--only static|moving]
Static: the two-mode mixture (d = 2). Moving: position and velocity in the plane (d = 4), position seen with heavy
tails at irregular times, 15 % missing. Seeds: data 6000, panel 0. CPU seconds are those of the process.
"""

import argparse
import resource
import time

import jax
import numpy as np
from jax import numpy as jnp

import pfbr
from pfbr.models import GaussianMixture


class Track(pfbr.StateSpaceModel):
    """Nearly constant velocity, position seen with Student's t noise."""

    dim: int = 4

    def sample_prior(self, key):
        return jnp.array([3.0, 3.0, 1.0, 1.0]) * jax.random.normal(key, (4,))

    def log_prior(self, x):
        return jnp.sum(jax.scipy.stats.norm.logpdf(x, 0.0, jnp.array([3.0, 3.0, 1.0, 1.0])))

    def sample_transition(self, key, x, *, dt):
        noise = jnp.sqrt(dt) * jnp.array([0.1, 0.1, 0.3, 0.3]) * jax.random.normal(key, (4,))
        return x + dt * jnp.concatenate([x[2:], jnp.zeros(2)]) + noise

    def log_likelihood(self, x, observation):
        return jax.scipy.stats.t.logpdf(observation - x[:2], 4.0, scale=0.5)

    def sample_observation(self, key, x):
        return x[:2] + 0.5 * jax.random.t(key, 4.0, (2,))


def resident() -> float:
    """Megabytes that the process has now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 1e6


def data(name: str, streams: int, rounds: int) -> tuple[pfbr.Model, np.ndarray, np.ndarray | None]:
    """The model, observations (rounds, streams, …), and times (rounds, streams) where they are irregular."""
    rng = np.random.default_rng(6000)
    if name == "static":
        model = GaussianMixture()
        keys = jax.random.split(jax.random.key(6000), streams)
        x = jax.vmap(model.sample_prior)(keys)
        each = lambda k, x: jax.vmap(lambda one: model.sample_observation(one, x))(jax.random.split(k, rounds))
        draw = jax.jit(jax.vmap(each))
        return model, np.swapaxes(np.asarray(draw(keys, x)), 0, 1), None
    times = np.cumsum(rng.exponential(1.0, (rounds, streams)), axis=0)
    x = np.array([3.0, 3.0, 1.0, 1.0]) * rng.normal(size=(streams, 4))
    rows, last = [], np.zeros(streams)
    for now in times:
        dt = (now - last)[:, None]
        x[:, :2] += dt * x[:, 2:] + 0.1 * np.sqrt(dt) * rng.normal(size=(streams, 2))
        x[:, 2:] += 0.3 * np.sqrt(dt) * rng.normal(size=(streams, 2))
        seen = x[:, :2] + 0.5 * rng.standard_t(4, size=(streams, 2))
        seen[rng.random(streams) < 0.15] = np.nan
        rows.append(seen)
        last = now
    return Track(), np.stack(rows), times


def measure(name: str, streams: int, rounds: int, particles: int, beside: int) -> None:
    model, rows, times = data(name, streams, rounds)
    ids = [f"s{i}" for i in range(streams)]
    before = resident()
    warm = pfbr.Panel(model, capacity=streams, num_particles=particles)
    for m in range(1 if name == "moving" else 2):  # compiles
        warm.update(rows[m], ids, time=None if times is None else times[m])
    del warm
    compiled = resident()
    panel = pfbr.Panel(model, capacity=streams, num_particles=particles)
    for m in range(rounds):
        cpu, wall, moved = time.process_time(), time.perf_counter(), panel.num_moved
        said = panel.update(rows[m], ids, time=None if times is None else times[m])
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        if m in (0, 1, 4, 9, rounds - 1):
            print(
                f"{name} round {m + 1}: {1e6 * cpu / streams:.0f} µs CPU a report ({wall:.2f} s in all), "
                f"{100 * (panel.num_moved - moved) / streams:.1f} % moved, {np.sum(said.status == 'refused')} refused",
                flush=True,
            )
    print(
        f"{name}: {streams} x {particles}, {rounds} rounds, {100 * panel.share_moved:.1f} % moved in all; a state "
        f"takes {panel.bytes_per_stream} bytes; {resident():.0f} MB resident (before {before:.0f}, "
        f"compiled {compiled:.0f})",
        flush=True,
    )
    cpu = time.process_time()
    size = len(panel.to_bytes())
    print(
        f"{name}: a saved panel has {size / 1e6:.1f} MB and takes {time.process_time() - cpu:.2f} s to make", flush=True
    )
    if beside == 0:
        return
    sessions = [
        pfbr.Session(model, num_particles=particles, history=256, key=jax.random.fold_in(jax.random.key(0), s))
        for s in range(beside)
    ]
    for session, row in zip(sessions, rows[0], strict=False):  # compiles what the first rows need
        session.update(row, time=None if times is None else times[0, 0])
    cpu, late = time.process_time(), []
    for m in range(1, rounds):
        for s, session in enumerate(sessions):
            session.update(rows[m, s], time=None if times is None else max(times[m, s], times[0, 0]))
        late.append(time.process_time() - cpu)
    last = (late[-1] - late[len(late) // 2]) / (beside * (len(late) - 1 - len(late) // 2))
    print(f"{name}: {beside} sessions one by one: {1e6 * last:.0f} µs CPU a report in the later half", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--particles", type=int, default=64)
    parser.add_argument("--beside", type=int, default=50)
    parser.add_argument("--only", choices=("static", "moving"))
    arguments = parser.parse_args()
    for name in ("static", "moving") if arguments.only is None else (arguments.only,):
        measure(name, arguments.streams, arguments.rounds, arguments.particles, arguments.beside)


if __name__ == "__main__":
    main()
