"""`pfbr check` says "ready" with status 0, or what to mend with status 1."""

from tests.cli.commands import pfbr_command, refused, written

WIDE = {"COLUMNS": "200"}
BROKEN = """
import jax
import pfbr
from jax import numpy as jnp

class Broken(pfbr.Model):
    dim: int = 1
    def sample_prior(self, key):
        return 2 * jax.random.normal(key, (1,))
    def log_prior(self, x):
        return jnp.sum(jax.scipy.stats.norm.logpdf(x))
    def log_likelihood(self, x, observation):
        return jnp.sum(x * observation)

model = Broken()
"""


def test_a_ready_model():
    result = pfbr_command("check", "gaussian-mean:dim=1", "--draws", 2048, env=WIDE)
    assert result.exit_code == 0, result.output
    assert "GaussianMean is ready." in result.stdout
    assert "✓" in result.stdout
    assert "✗" not in result.stdout
    for method in ("sample_prior", "log_prior", "sample_observation", "log_likelihood", "linear_gaussian"):
        assert method in result.stdout


def test_a_broken_model(tmp_path):
    model = f"{written(tmp_path / 'broken.py', BROKEN)}:model"
    result = pfbr_command("check", model, "--draws", 2048, "--quiet", env=WIDE)
    assert result.exit_code == 1, result.output
    assert "✗" in result.stdout
    assert "✓" not in result.stdout
    assert "x[0]: the draws have mean" in result.stdout
    assert "Broken is not ready: mend one thing." in result.stdout


def test_what_cannot_be_checked_is_an_error(tmp_path):
    refused(pfbr_command("check", "gausian-mean"), "Did you mean 'gaussian-mean'?")
    refused(pfbr_command("check", "gaussian-mean", "--draws", 10), "`draws` must be at least")
