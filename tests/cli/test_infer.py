"""`pfbr infer` on files: what it writes and says, how it refuses; nothing is ever half written."""

import numpy as np
import pytest
from jax import numpy as jnp

import pfbr
from pfbr.cli.spec import resolve
from pfbr.metrics.truth import kalman
from pfbr.models import GaussianMean
from tests.cli.commands import pfbr_command, refused, written

SPEC, MODEL = "gaussian-mean:dim=2,observation_std=1", GaussianMean(2, 1.0, 1.0)
FILTER, SMALL = ("--method", "smc", "--particles", 16), {"method": "smc", "num_particles": 16}  # soon compiled
DRIFT = """
import jax
import pfbr
from jax import numpy as jnp

class Drift(pfbr.StateSpaceModel):
    dim: int = 1
    def sample_prior(self, key):
        return jax.random.normal(key, (1,))
    def log_prior(self, x):
        return jnp.sum(jax.scipy.stats.norm.logpdf(x))
    def sample_transition(self, key, x, *, dt, inputs):
        return x + inputs["push"] * dt + jnp.sqrt(dt) * jax.random.normal(key, (1,))
    def log_transition(self, x_next, x, *, dt, inputs):
        return jnp.sum(jax.scipy.stats.norm.logpdf(x_next, x + inputs["push"] * dt, jnp.sqrt(dt)))
    def log_likelihood(self, x, observation):
        return jax.scipy.stats.norm.logpdf(observation, x)
    def sample_observation(self, key, x):
        return x + jax.random.normal(key, (1,))
    def sample_inputs(self, key):
        return {"push": jax.random.normal(key)}

model = Drift()
"""
NAMED = """
import jax
import pfbr
from jax import numpy as jnp

class Scale(pfbr.Model):
    unknowns = {"mu": (2,), "sigma": pfbr.positive}
    def sample_prior(self, key):
        first, second = jax.random.split(key)
        return {"mu": jax.random.normal(first, (2,)), "sigma": jax.random.exponential(second)}
    def log_prior(self, x):
        return jnp.sum(jax.scipy.stats.norm.logpdf(x["mu"])) - x["sigma"]
    def log_likelihood(self, x, observation):
        return jax.scipy.stats.norm.logpdf(observation, x["mu"], x["sigma"])
    def sample_observation(self, key, x):
        return x["mu"] + x["sigma"] * jax.random.normal(key, (2,))

model = Scale()
"""


@pytest.fixture(scope="session")
def file(tmp_path_factory, stream):
    path = tmp_path_factory.mktemp("stream") / "stream.npy"
    np.save(path, stream)
    return path


def load(path) -> dict[str, np.ndarray]:
    with np.load(path) as held:
        return {name: held[name] for name in held.files}


def test_it_writes_the_posterior_after_every_observation(tmp_path, file, stream):
    out = tmp_path / "posterior.npz"
    result = pfbr_command("infer", SPEC, file, "--method", "gaussian", "--out", out, "--particles", 256)
    assert result.exit_code == 0, result.output
    held, truth = load(out), kalman(MODEL, jnp.asarray(stream))
    assert held["particles"].shape == (5, 256, 2)
    assert held["log_density"].shape == held["weights"].shape == (5, 256)
    # The prior's particles are quasi-random with the right moments, and the flow is exact here.
    np.testing.assert_allclose(held["mean"], truth.mean, atol=0.02)
    np.testing.assert_allclose(held["covariance"], truth.cov, atol=0.02)
    np.testing.assert_allclose(held["std"] ** 2, np.diagonal(truth.cov, axis1=1, axis2=2), atol=0.02)


def test_it_runs_many_streams_and_repeats_itself(tmp_path, stream):
    np.save(tmp_path / "many.npy", np.stack([stream, stream[::-1], -stream]))
    answers = []
    for name in ("a.npz", "b.npz"):
        words = ("infer", SPEC, tmp_path / "many.npy", "--method", "gaussian", "--out", tmp_path / name)
        assert pfbr_command(*words, "--particles", 16, "--seed", 5).exit_code == 0
        answers.append(load(tmp_path / name))
    assert answers[0]["particles"].shape == (3, 5, 16, 2)
    assert answers[0]["mean"].shape == (3, 5, 2)
    for key in answers[0]:
        np.testing.assert_array_equal(answers[0][key], answers[1][key])


def test_times_and_inputs_come_from_columns(tmp_path):
    model = f"{written(tmp_path / 'drift.py', DRIFT)}:model"
    data = written(tmp_path / "track.csv", "seconds,y,push\n1.5,0.3,1\n1.5,,1\n4,2.5,-1\n")
    out = tmp_path / "out.npz"
    words = ("infer", model, data, "--time", "seconds", "--inputs", "push", "--start", 1, *FILTER)
    result = pfbr_command(*words, "--out", out)
    assert result.exit_code == 0, result.output
    pushes = {"push": np.array([1.0, 1.0, -1.0])}
    observed = np.array([[0.3], [np.nan], [2.5]])
    trace = pfbr.run(resolve(model), observed, times=[1.5, 1.5, 4.0], inputs=pushes, start=1.0, **SMALL)
    np.testing.assert_array_equal(load(out)["particles"], trace.particles)
    assert load(out)["log_evidence"][1] == load(out)["log_evidence"][0]  # nothing was seen

    dated = written(tmp_path / "dated.csv", "t,y,push\n2024-05-01T12:00,0.3,1\n2024-05-03,2.5,-1\n")
    words = ("infer", model, dated, "--time", "t", "--inputs", "push", *FILTER, "--out", out)
    refused(pfbr_command(*words), "give --start, the date of the prior, and --time-unit")
    refused(pfbr_command(*words, "--start", "2024-05-01"), "time_unit")
    refused(pfbr_command(*words, "--start", "tomorrow", "--time-unit", "D"), "--start")
    refused(pfbr_command(*words, "--start", "2024-05-01", "--time-unit", "days"), "days")
    assert pfbr_command(*words, "--start", "2024-05-01", "--time-unit", "D").exit_code == 0
    pushes = {"push": np.array([1.0, -1.0])}
    trace = pfbr.run(resolve(model), observed[::2], times=[0.5, 2.0], inputs=pushes, **SMALL)
    np.testing.assert_allclose(load(out)["particles"], trace.particles, atol=1e-5)


def test_named_unknowns_are_written_by_name(tmp_path):
    model = f"{written(tmp_path / 'scale.py', NAMED)}:model"
    data, out = written(tmp_path / "a.csv", "1,2\nNA,1\n"), tmp_path / "out.npz"
    result = pfbr_command("infer", model, data, "--method", "prior", "--out", out, "--particles", 32)
    assert result.exit_code == 0, result.output
    held = load(out)
    assert held["samples.mu"].shape == (2, 32, 2)
    assert held["samples.sigma"].shape == (2, 32)
    assert (held["samples.sigma"] > 0).all()
    assert held["mean.mu"].shape == held["std.mu"].shape == (2, 2)
    weighed = np.sum(held["weights"] * np.exp(held["particles"][..., 2]), axis=-1)
    np.testing.assert_allclose(held["mean.sigma"], weighed, rtol=1e-5)
    assert "covariance" not in held  # it would be of the free numbers


def test_it_refuses_and_leaves_nothing_behind(tmp_path, file):
    written(tmp_path / "cut.csv", "1,2\n3")
    (tmp_path / "foreign.pfbr").write_bytes(b"\x00\x01 not ours")
    before = sorted(tmp_path.iterdir())
    out = tmp_path / "out.npz"
    refused(pfbr_command("infer", "gausian-mean", file, "--out", out), "Did you mean 'gaussian-mean'?")
    refused(pfbr_command("infer", SPEC, tmp_path / "none.npy", "--out", out), "there is no file")
    refused(pfbr_command("infer", SPEC, tmp_path / "cut.csv", "--out", out), "line 2")
    refused(pfbr_command("infer", "gaussian-mean:dim=3", file, "--out", out), "(T, 3)")
    for method in ("none.pfbr", "foreign.pfbr"):
        refused(pfbr_command("infer", SPEC, file, "--method", tmp_path / method, "--out", out), method)
    refused(pfbr_command("infer", SPEC, file, "--method", "nobody", "--out", out), "there is no method 'nobody'")
    refused(pfbr_command("infer", SPEC, file, "--method", "smc", "--out", out), "cannot do GaussianMean")
    refused(pfbr_command("infer", SPEC, file), "--out FILE.npz is needed")
    refused(pfbr_command("infer", SPEC, file, "--out", tmp_path / "out.txt"), ".npz")
    refused(pfbr_command("infer", SPEC, file, "--out", tmp_path / "no" / "out.npz"), "no directory")
    refused(pfbr_command("infer", SPEC, file, "--time", "t", "--out", out), "have no names")
    refused(
        pfbr_command("infer", "logistic-regression:dim=2", written(tmp_path / "y.csv", "1\n"), "--out", out), "inputs"
    )
    assert pfbr_command("infer", SPEC, file, "--out", out, "--particles", 1).exit_code == 2
    assert sorted({*tmp_path.iterdir()} - {tmp_path / "y.csv"}) == before


def test_a_failed_run_keeps_the_older_answer(tmp_path, file):
    out = tmp_path / "out.npz"
    out.write_bytes(b"older answer")
    model = written(
        tmp_path / "impossible.py",
        "from jax import numpy as jnp\n"
        "from pfbr.models import GaussianMean\n"
        "class Impossible(GaussianMean):\n"
        "    def log_likelihood(self, x, observation):\n"
        "        return jnp.nan * jnp.sum(x)\n"
        "model = Impossible(2)\n",
    )
    words = ("infer", f"{model}:model", file, "--method", "gaussian", "--out", out, "--particles", 8)
    refused(pfbr_command(*words), "`Impossible.log_likelihood` is NaN")
    assert out.read_bytes() == b"older answer"
