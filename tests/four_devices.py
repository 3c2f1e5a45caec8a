"""Runs, panels and training on four host devices: `python -m tests.four_devices FILE quick|auto` writes what each gave,
with a mesh and without one; `auto` is the default method, whose steps take long to compile."""

import sys

import jax
import numpy as np
import pandas as pd
from jax import numpy as jnp
from jax.sharding import Mesh

import pfbr
from pfbr.inference.method import record
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


def main(path: str, which: str) -> None:
    found: dict[str, np.ndarray] = {}

    def keep(name: str, values: dict) -> None:
        found.update({f"{name}/{key}": np.asarray(value) for key, value in values.items()})

    {"quick": quick, "auto": auto}[which](keep, {None: None, **meshes()})
    np.savez(path, **found)


def _by_itself(method, rows, numbers) -> np.ndarray:
    """What one device has to do, done on the default one."""

    def one(number, stream):
        return record(jax.random.fold_in(jax.random.key(3), number), method, SYSTEM, stream, N).particles.points

    return np.asarray(jax.jit(jax.vmap(one))(numbers, rows))


if __name__ == "__main__":
    main(*sys.argv[1:])
