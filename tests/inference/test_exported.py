"""An exported step gives the session's own numbers, and runs without pfbr and without the model's code."""

import json
import os
import subprocess
import sys
import venv

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import pfbr
from pfbr.errors import InputError
from pfbr.inference.exported import LOADER, export_step
from pfbr.inference.exported_loader import Stream
from pfbr.models import GaussianMean

ROWS = np.array([[0.4, -1.2], [0.9, 0.1], [np.nan, np.nan], [-0.3, 0.8]], np.float32)
ALONE = """
import sys
sys.modules.update(pfbr=None, equinox=None, jaxtyping=None)  # asking for one of them is an error
sys.path.insert(0, {folder!r})
from pfbr_step import Stream
import numpy as np
stream = Stream(seed=3)
for row in {rows}:
    answer = stream.update([np.nan if y is None else y for y in row])
print(repr(answer["mean"].tolist()))
"""


class Pushed(pfbr.StateSpaceModel):
    """A level that its inputs push, for a time that is told."""

    unknowns = {"level": ()}  # noqa: RUF012

    def sample_prior(self, key):
        return {"level": jax.random.normal(key)}

    def log_prior(self, x):
        return jax.scipy.stats.norm.logpdf(x["level"])

    def sample_transition(self, key, x, *, dt, inputs):
        return {"level": x["level"] + dt * inputs["push"] + jnp.sqrt(dt) * jax.random.normal(key)}

    def log_likelihood(self, x, observation):
        return jax.scipy.stats.norm.logpdf(observation, x["level"], 0.5)

    def sample_observation(self, key, x):
        return x["level"] + 0.5 * jax.random.normal(key, (1,))

    def sample_inputs(self, key):
        return {"push": jax.random.normal(key)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    directory = tmp_path_factory.mktemp("step")
    export_step(GaussianMean(2, observation_std=1.0), directory, method="smc-one-pass", num_particles=64)
    return directory


def test_it_is_the_session_step_by_step(folder):
    session = pfbr.Session(GaussianMean(2, observation_std=1.0), method="smc-one-pass", num_particles=64, key=3)
    stream = Stream(folder, seed=3)
    for row in ROWS:
        posterior, answer = session.update(row), stream.update(row)
        np.testing.assert_allclose(answer["particles"], posterior.particles, atol=1e-5)
        np.testing.assert_allclose(answer["mean"], posterior.mean(), atol=1e-5)
        np.testing.assert_allclose(answer["std"], posterior.std(), atol=1e-5)
        np.testing.assert_allclose(answer["info.log_evidence"], posterior.info.log_evidence, atol=1e-4)
    assert stream.stage == 4


def test_times_inputs_and_names(tmp_path):
    export_step(Pushed(), tmp_path, method="smc", num_particles=64)
    session, stream = pfbr.Session(Pushed(), method="smc", num_particles=64, key=3), Stream(tmp_path, seed=3)
    now = 0.0
    for dt, push, y in ((0.5, 1.0, 0.2), (2.0, -1.0, -1.4), (1.0, 0.0, -1.0)):
        now += dt
        posterior = session.update([y], time=now, inputs={"push": push})
        answer = stream.update([y], dt=dt, inputs={"push": push})
        np.testing.assert_allclose(answer["mean"][0], posterior.mean()["level"], atol=1e-5)
        assert answer["unknown.level"].shape == (64,)
    for wrong, said in (
        ({"dt": -1.0, "inputs": {"push": 0.0}}, "`dt` must be"),
        ({"inputs": {"pull": 0.0}}, "a dict with"),
        ({"inputs": None}, "a dict with"),
        ({"inputs": {"push": [1.0, 2.0]}}, "must have shape"),
    ):
        with pytest.raises(ValueError, match=said):
            stream.update([0.0], **wrong)
    assert stream.stage == 3


def test_neither_pfbr_nor_the_model_is_needed(folder):
    rows = [[None if np.isnan(y) else float(y) for y in row] for row in ROWS]
    code = ALONE.format(folder=str(folder), rows=rows)
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=_bare(), timeout=240)
    assert ended.returncode == 0, ended.stderr
    stream = Stream(folder, seed=3)
    for row in ROWS:
        answer = stream.update(row)
    np.testing.assert_allclose(json.loads(ended.stdout), answer["mean"], atol=1e-5)


@pytest.mark.slow
def test_an_environment_with_jax_alone_runs_it(folder, root, tmp_path):
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    pinned = [f"{name}=={__import__(name).__version__}" for name in ("jax", "jaxlib", "numpy", "flatbuffers")]
    subprocess.run([python, "-m", "pip", "install", "--quiet", *pinned], check=True, timeout=900)
    rows = [[None if np.isnan(y) else float(y) for y in row] for row in ROWS]
    code = ALONE.format(folder=str(folder), rows=rows).replace("sys.modules", "{}")
    ended = subprocess.run([python, "-c", code], capture_output=True, text=True, env=_bare(), timeout=240)
    assert ended.returncode == 0, ended.stderr


def _bare() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "XLA_FLAGS")}


def test_a_bad_observation_changes_nothing(folder):
    stream = Stream(folder)
    for wrong in ([1.0], [1.0, np.inf], "ab"):
        with pytest.raises(ValueError):  # noqa: PT011
            stream.update(wrong)
    with pytest.raises(ValueError, match="takes no inputs"):
        stream.update([0.0, 0.0], inputs=1.0)
    with pytest.raises(ValueError, match="does not look at time"):
        stream.update([0.0, 0.0], dt=1.0)
    assert stream.stage == 0


def test_damage_is_seen(folder, tmp_path):
    for name in ("start.bin", "step.bin", "step.json", LOADER):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    content = bytearray((folder / "step.bin").read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "step.bin").write_bytes(content)
    with pytest.raises(ValueError, match="damaged"):
        Stream(tmp_path)


def test_what_cannot_be_exported_is_refused(tmp_path):
    class Silent(GaussianMean):
        sample_observation = pfbr.Model.sample_observation

    with pytest.raises(InputError, match="does not tell the shape"):
        export_step(Silent(2), tmp_path / "a", method="prior")
    with pytest.raises(InputError, match="`platforms`"):
        export_step(GaussianMean(2), tmp_path / "a", method="prior", platforms=("abacus",))
    assert not (tmp_path / "a").exists()
