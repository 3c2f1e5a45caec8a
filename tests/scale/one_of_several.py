"""One of several processes on loopback: `one_of_several.py ACTION PORT PROCESSES PROCESS FOLDER [resume] [slow]`.

`compute` writes what a run, a panel and a frame of streams gave in this process; `train` is a small training.
"""

import sys
import time
from pathlib import Path

import jax
import numpy as np

import pfbr
from pfbr.scale.processes import join

SETTINGS = pfbr.TrainingSettings(
    steps=12, num_particles=8, length=2, batch=3, validate_every=2, validation_tasks=3, learning_rate=0.02
)


def compute(folder: Path, mesh) -> None:
    from tests import four_devices  # models hold arrays, which are computed: after the processes have joined

    found = {
        **{f"run/{k}": v for k, v in four_devices.ran(mesh, four_devices.SYSTEM, "smc").items()},
        **{f"panel/{k}": v for k, v in four_devices.panelled(mesh, four_devices.SYSTEM, "smc").items()},
    }
    np.savez(folder / f"found-{jax.process_index()}.npz", **found)


def train(folder: Path, mesh, resume: bool, slow: bool) -> None:
    from tests.training import interrupted_training

    def say(report):
        print("step", report.step, flush=True)
        if slow:
            time.sleep(0.3)

    operator, _ = pfbr.fit(
        interrupted_training.Spoilt(2),
        key=5,
        operator="paper",
        architecture={"width": 4, "steps": 1},
        settings=SETTINGS,
        checkpoint=folder / "run.checkpoint",
        resume=resume,
        progress=say,
        mesh=mesh,
    )
    weights = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(operator.velocity) if np.size(leaf)])
    np.save(folder / f"weights-{jax.process_index()}.npy", weights)


def main(action: str, port: str, processes: str, process: str, folder: str, *flags: str) -> None:
    if int(processes) > 1:
        join(f"127.0.0.1:{port}", int(processes), int(process))
        assert jax.process_count() == int(processes)
    mesh = "all" if int(processes) > 1 else None
    if action == "compute":
        compute(Path(folder), mesh)
    else:
        train(Path(folder), mesh, "resume" in flags, "slow" in flags)


if __name__ == "__main__":
    from tests.scale import one_of_several  # the model then has the same name here as in a test

    one_of_several.main(*sys.argv[1:])
