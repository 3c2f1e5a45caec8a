"""Runs, panels and training on four host devices: `python -m tests.four_devices FILE quick|auto` writes what each gave,
with a mesh and without one; `auto` is the default method, whose steps take long to compile."""

import sys

import jax
import numpy as np
import pandas as pd
from jax import numpy as jnp
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

import pfbr
from pfbr.inference.method import record
from pfbr.metrics.truth import exact
from pfbr.scale.particles import ShardedSMC, moments
from pfbr.scale.resampling import resampled
from tests.training import interrupted_training


class Robust(pfbr.StateSpaceModel):
    """A walk seen through heavy tails: no closed form, so that some streams are moved and some weighed."""

    dim: int = 2

    def sample_prior(self, key):
        return 3 * jax.random.normal(key, (2,))

    def log_prior(self, x):
        return jnp.sum(jax.scipy.stats.norm.logpdf(x, 0, 3))

    def sample_transition(self, key, x):
        return x + 0.5 * jax.random.normal(key, (2,))

    def log_likelihood(self, x, observation):
        return jax.scipy.stats.t.logpdf(2 * (observation - x), 4.0)


ROBUST = Robust()
MEAN = pfbr.models.GaussianMean(2, observation_std=1.0)
SYSTEM = pfbr.models.LinearDynamics([[0.9, 0.2], [-0.1, 0.8]], [[1.0, 0.0], [0.3, 0.7]])
ROWS = np.random.default_rng(0).normal(size=(10, 3, 2)).astype(np.float32)
N = 16
TRAINING = pfbr.TrainingSettings(
    steps=2, num_particles=8, length=2, batch=3, validate_every=1, validation_tasks=3, learning_rate=0.02
)


def meshes() -> dict:
    devices = np.asarray(jax.devices())
    assert len(devices) == 4
    return {
        "four": jax.make_mesh((4,), ("streams",)),
        "two": Mesh(devices[:2], ("x",)),
        "square": Mesh(devices.reshape(2, 2), ("x", "y")),
        "one": Mesh(devices[:1], ("x",)),
    }


def ran(mesh, model, method) -> dict:
    trace = pfbr.run(model, ROWS, method=method, key=3, num_particles=N, mesh=mesh)
    return {"particles": trace.particles, "weights": trace.weights, "log_evidence": trace.info.log_evidence}


def framed(mesh) -> dict:
    """Streams of different lengths; more of them than one chunk has room for."""
    lengths = [40, 1, 30, 7, 25, 12]
    stream = np.repeat(np.arange(6), lengths)
    values = np.random.default_rng(1).normal(size=(len(stream), 2))
    frame = pd.DataFrame({"s": stream, "a": values[:, 0], "b": values[:, 1]})
    trace = pfbr.run(MEAN, frame, by="s", observation=["a", "b"], key=3, num_particles=N, mesh=mesh)
    return {"particles": trace.particles, "log_evidence": trace.info.log_evidence}


def panelled(mesh, model, method) -> dict:
    """Thirty streams, of which one is refused and one sees nothing, then eleven of them again after a save."""
    panel = pfbr.Panel(model, 64, method=method, key=5, num_particles=N, mesh=mesh)
    rows = np.random.default_rng(2).normal(size=(30, 2))
    rows[4], rows[17] = np.inf, np.nan
    first = panel.update(rows, streams=list(range(30)))
    panel = pfbr.Panel.from_bytes(panel.to_bytes(), model, mesh=mesh)
    again = panel.update(rows[5:16], streams=list(range(5, 16)))
    return {"first": first.particles, "status": first.status, "again": again.particles, "moved": panel.num_moved}


def trained(mesh) -> dict:
    operator, report = pfbr.fit(
        interrupted_training.Spoilt(2),
        key=5,
        operator="paper",
        architecture={"width": 4, "steps": 1},
        settings=TRAINING,
        progress=False,
        mesh=mesh,
    )
    weights = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(operator.velocity) if np.size(leaf)])
    return {"weights": weights, "scores": np.asarray([entry["score"] for entry in report.history])}


def quick(keep, on) -> None:
    """Whatever is soon compiled."""
    shares = [np.arange(s, min(s + 3, 10)) for s in (0, 3, 6, 9)]  # what each of four devices has of ten
    method = pfbr.as_method("smc", SYSTEM)
    for number, share in enumerate(shares):
        rows = np.concatenate([ROWS[share], np.repeat(ROWS[:1], 3 - len(share), axis=0)])
        numbers = np.concatenate([share, np.zeros(3 - len(share), int)])
        keep(f"share/{number}", {"particles": _by_itself(method, rows, numbers)[: len(share)]})
    for mesh in (None, "square", "four"):
        keep(f"run/{mesh}", ran(on[mesh], SYSTEM, "smc"))
    for mesh in (None, "four"):
        keep(f"panel/{mesh}", panelled(on[mesh], SYSTEM, "smc"))
        keep(f"fit/{mesh}", trained(on[mesh]))


def auto(keep, on) -> None:
    """The default method."""
    for mesh in (None, "one", "two", "four"):
        keep(f"run/{mesh}", ran(on[mesh], MEAN, "auto"))
    for mesh in (None, "four"):
        keep(f"frame/{mesh}", framed(on[mesh]))
        keep(f"panel/{mesh}", panelled(on[mesh], ROBUST, "auto"))


def particles(keep, on) -> None:
    """One set of particles over one device and over four."""
    weights = np.exp(np.random.default_rng(3).normal(scale=3.0, size=4096)).astype(np.float32)
    try:
        ShardedSMC(on["four"]).init(jax.random.key(0), MEAN, 4095)
    except pfbr.errors.InputError as error:
        keep("refused", {"why": str(error)})
    keep("slots", {"weights": weights, **_shared_out(on["four"].devices, weights)})
    for name, model in (("filter", SYSTEM), ("static", MEAN)):
        rows = np.random.default_rng(4).normal(loc=1.0, size=(12, 2)).astype(np.float32)
        for number, mesh in ((1, on["one"]), (4, on["four"])):
            keep(f"{name}/{number}", _filtered(ShardedSMC(mesh), model, rows, 4096))
        truth = jax.tree.map(lambda leaf: leaf[-1], exact(model, rows))
        keep(f"{name}/exact", {"mean": truth.mean, "covariance": truth.cov, "log_evidence": truth.log_evidence})


def _shared_out(devices, weights) -> dict:
    """Which particle each slot has after resampling, of particles that are their own numbers."""
    mesh = Mesh(np.asarray(devices).reshape(-1), ("p",))
    one = lambda points, logs: resampled(jax.random.key(0), points, logs, "p", 4)
    spread = jax.jit(jax.shard_map(one, mesh=mesh, in_specs=P("p"), out_specs=P("p"), check_vma=False))
    numbers = jnp.arange(len(weights), dtype=jnp.float32)[:, None]
    found = np.asarray(spread(numbers, jnp.log(weights)))[:, 0].astype(int)
    return {"ancestors": found, "shift": jax.random.uniform(jax.random.key(0))}


def _filtered(method, model, rows, number) -> dict:
    """By the functional core: what a stream of observations leaves."""
    state = jax.jit(lambda key: pfbr.init(key, method, model, num_particles=number))(jax.random.key(0))
    step = jax.jit(lambda key, state, row: pfbr.step(key, method, model, state, row))
    sizes = []
    for place, row in enumerate(rows):
        state, info = step(jax.random.fold_in(jax.random.key(1), place), state, row)
        sizes.append(float(info.ess))
    assert len(state.own.points.sharding.device_set) == method.mesh.size  # they are where they should be
    found = moments(method, state.own)
    poor = sum(size <= number / 2 for size in sizes)
    told = {"mean": found.mean, "covariance": found.covariance, "log_evidence": info.log_evidence}
    return {**told, "ess": np.asarray(sizes) / number, "resampled": poor}


def main(path: str, which: str) -> None:
    found: dict[str, np.ndarray] = {}

    def keep(name: str, values: dict) -> None:
        found.update({f"{name}/{key}": np.asarray(value) for key, value in values.items()})

    {"quick": quick, "auto": auto, "particles": particles}[which](keep, {None: None, **meshes()})
    np.savez(path, **found)


def _by_itself(method, rows, numbers) -> np.ndarray:
    """What one device has to do, done on the default one."""

    def one(number, stream):
        return record(jax.random.fold_in(jax.random.key(3), number), method, SYSTEM, stream, N).particles.points

    return np.asarray(jax.jit(jax.vmap(one))(numbers, rows))


if __name__ == "__main__":
    main(*sys.argv[1:])
