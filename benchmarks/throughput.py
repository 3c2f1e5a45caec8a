"""Thousands of streams a report: our panel beside cuthbert's bootstrap filter under `vmap`, in one run.

    pip install cuthbert
    python -m benchmarks.throughput [--streams 10000] [--rounds 20] [--only static|moving]

Streams and models are those of `benchmarks.panel`, seed 6000. Stream-updates a second of CPU are those of the later
half of the rounds, compilation left out. The error is that of the mean after each of these rounds, in posterior
standard deviations (Mahalanobis over √d, root mean square over the first `JUDGED` streams); truth by a million draws of
the prior (static) or a bootstrap filter of 200,000 particles (moving). The rival has 64 particles and more, on fewer
streams where there are many, so that all fit into memory.
"""

import argparse
import time
from collections.abc import Iterator

import jax
import numpy as np
from jax import numpy as jnp

import pfbr
from benchmarks.panel import data, resident

JUDGED = 40  # streams with a truth
DRAWS, PARTICLES = 1_000_000, 200_000  # of the truth
COUNTS = (64, 256, 1024, 4096)  # particles of the rival
MOST = 2_560_000  # particles in all


def rival(model: pfbr.Model, particles: int):
    """cuthbert's, with systematic resampling where half of the particles no longer count. Functions for one stream: the
    first state, and one more report."""
    from cuthbert.smc.particle_filter import build_filter
    from cuthbertlib.resampling import systematic
    from cuthbertlib.resampling.adaptive import ess_decorator

    moves = isinstance(model, pfbr.StateSpaceModel)

    def propagate(key, x, row):
        return model.sample_transition(key, x, dt=row["dt"]) if moves else x

    def log_potential(_, x, row):
        seen = jnp.isfinite(row["y"])
        values = model.log_likelihood(x, jnp.where(seen, row["y"], 0.0))
        return jnp.sum(jnp.where(seen, values, 0.0)) if jnp.ndim(values) else values

    built = build_filter(
        model.sample_prior, propagate, log_potential, particles, ess_decorator(systematic.resampling, 0.5)
    )

    def step(key, state, row):
        return built.filter_combine(state, built.filter_prepare(row, key=key))

    def begin(key, row):
        return built.init_prepare(key=key)._replace(model_inputs=row)

    return begin, step


def moments(points, log_weights):
    weights = jax.nn.softmax(log_weights)
    mean = weights @ points
    centred = points - mean
    return mean, (weights[:, None] * centred).T @ centred


def rows_of(observations: np.ndarray, times: np.ndarray | None) -> list[dict]:
    """A dict for each round, of all streams."""
    if times is None:
        return [{"y": jnp.asarray(y), "dt": jnp.ones(len(y))} for y in observations]
    gaps = np.diff(times, axis=0, prepend=0)
    return [
        {"y": jnp.asarray(y, jnp.float32), "dt": jnp.asarray(g, jnp.float32)}
        for y, g in zip(observations, gaps, strict=True)
    ]


def followed(
    model: pfbr.Model, rows: list[dict], particles: int, seed: int
) -> Iterator[tuple[np.ndarray, np.ndarray, float]]:
    """Means and covariances of all streams after each round, and the CPU seconds that it took."""
    begin, step = rival(model, particles)
    streams = len(rows[0]["dt"])

    @jax.jit
    def one_round(keys, state, row):
        state = jax.vmap(step)(keys, state, row)
        return state, jax.vmap(moments)(state.particles, state.log_weights)

    keys = jax.random.split(jax.random.key(seed), streams)
    state = jax.jit(jax.vmap(begin))(keys, rows[0])
    compiled = one_round.lower(keys, state, rows[0]).compile()
    for number, row in enumerate(rows):
        fresh = jax.vmap(lambda k, m=number: jax.random.fold_in(k, m + 1))(keys)
        jax.block_until_ready(fresh)
        begun = time.process_time()
        state, (mean, cov) = jax.block_until_ready(compiled(fresh, state, row))
        yield np.asarray(mean), np.asarray(cov), time.process_time() - begun


def truth_of(model: pfbr.Model, rows: list[dict]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Mean and covariance after each round, of each stream; one stream at a time."""
    streams = len(rows[0]["dt"])
    found: list[list] = [[] for _ in rows]
    if isinstance(model, pfbr.StateSpaceModel):
        for s in range(streams):
            own = [jax.tree.map(lambda leaf, s=s: leaf[s : s + 1], row) for row in rows]
            for number, (mean, cov, _) in enumerate(followed(model, own, PARTICLES, 77 + s)):
                found[number].append((mean[0], cov[0]))
    else:
        points = jax.jit(jax.vmap(model.sample_prior))(jax.random.split(jax.random.key(77), DRAWS))
        add = jax.jit(lambda total, y: total + jax.vmap(lambda x: jnp.sum(model.log_likelihood(x, y)))(points))
        summed = jax.jit(lambda total: moments(points, total))
        for s in range(streams):
            total = jnp.zeros(DRAWS)
            for number, row in enumerate(rows):
                total = add(total, row["y"][s])
                found[number].append(tuple(map(np.asarray, summed(total))))
    return [tuple(map(np.stack, zip(*one, strict=True))) for one in found]  # type: ignore[misc]


def error(means: np.ndarray, truth: tuple[np.ndarray, np.ndarray]) -> float:
    """Mean square over the judged streams."""
    centre, cov = (np.asarray(one, float) for one in truth)
    off = np.asarray(means, float)[: len(centre)] - centre
    return float(np.mean(np.einsum("si,si->s", off, np.linalg.solve(cov, off[..., None])[..., 0]) / off.shape[1]))


def told(name: str, who: str, streams: int, particles: int, seconds: list[float], errors: list[float], before: float):
    late = len(seconds) // 2
    print(
        f"{name}, {who}, {streams} x {particles}: {streams / np.mean(seconds[late:]):,.0f} stream-updates a CPU "
        f"second, error {np.sqrt(np.mean(errors[late:])):.3f}, {resident() - before:+.0f} MB",
        flush=True,
    )


def measure(name: str, streams: int, rounds: int, particles: int) -> None:
    model, observations, times = data(name, streams, rounds)
    rows = rows_of(observations, times)
    judged = [jax.tree.map(lambda leaf: leaf[:JUDGED], row) for row in rows]
    truth = truth_of(model, judged)
    jax.clear_caches()
    ids = [f"s{i}" for i in range(streams)]
    before = resident()
    for trial in range(2):  # the first one compiles
        panel = pfbr.Panel(model, capacity=streams, num_particles=particles)
        seconds, errors = [], []
        for number, row in enumerate(observations):
            begun = time.process_time()
            panel.update(row, ids, time=None if times is None else times[number])
            seconds.append(time.process_time() - begun)
            if trial:
                errors.append(error(np.stack([panel.posterior(one).mean() for one in ids[:JUDGED]]), truth[number]))
    told(name, "pfbr", streams, particles, seconds, errors, before)
    for count in COUNTS:
        some = min(streams, max(MOST // count, JUDGED))
        before = resident()
        few = [jax.tree.map(lambda leaf, some=some: leaf[:some], row) for row in rows]
        seconds, errors = [], []
        for number, (mean, _, spent) in enumerate(followed(model, few, count, 5)):
            seconds.append(spent)
            errors.append(error(mean, truth[number]))
        told(name, "cuthbert", some, count, seconds, errors, before)
        jax.clear_caches()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--particles", type=int, default=64, help="of the panel")
    parser.add_argument("--only", choices=("static", "moving"))
    args = parser.parse_args()
    for name in [args.only] if args.only else ["static", "moving"]:
        measure(name, args.streams, args.rounds, args.particles)


if __name__ == "__main__":
    main()
