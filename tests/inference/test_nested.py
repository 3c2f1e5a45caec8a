"""Parameters beside a state: against a grid over the parameter with Kalman's evidence at each value."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import pfbr
from pfbr.errors import InputError
from pfbr.metrics.truth import kalman
from pfbr.models import LinearDynamics

OBSERVATION_STD = 0.5


class LocalLevel(pfbr.StateSpaceModel):
    """A level that wanders by an unknown amount."""

    dim: int = 1

    def sample_parameters(self, key):
        return {"log_step": -1.0 + jax.random.normal(key)}

    def log_parameters(self, params):
        return jax.scipy.stats.norm.logpdf(params["log_step"], -1.0, 1.0)

    def sample_prior(self, key):
        return jax.random.normal(key, (1,))

    def log_prior(self, x):
        return jax.scipy.stats.norm.logpdf(x[0])

    def sample_transition(self, key, x, *, params):
        return x + jnp.exp(params["log_step"]) * jax.random.normal(key, (1,))

    def log_likelihood(self, x, observation):
        return jax.scipy.stats.norm.logpdf(observation[0], x[0], OBSERVATION_STD)


def test_the_parameter_and_the_evidence_are_those_of_the_grid():
    """128 outer particles: the mean to 0.35 posterior standard deviations (128 exact draws: 0.09), evidence to 0.6."""
    rng = np.random.default_rng(0)
    stream = np.cumsum(0.3 * rng.normal(size=25)) + OBSERVATION_STD * rng.normal(size=25)
    grid = jnp.linspace(-5.0, 3.0, 161)

    def evidence(log_step):
        system = LinearDynamics(jnp.eye(1), jnp.eye(1), 1.0, OBSERVATION_STD)
        system = jax.tree.map(lambda leaf: leaf, system)
        import equinox as eqx

        system = eqx.tree_at(lambda s: s.transition_std, system, jnp.exp(log_step))
        return kalman(system, jnp.asarray(stream[:, None], jnp.float32)).log_evidence[-1]

    log_joint = jax.vmap(evidence)(grid) + jax.scipy.stats.norm.logpdf(grid, -1.0, 1.0)
    mass = jax.nn.softmax(log_joint)
    mean = float(mass @ grid)
    std = float(jnp.sqrt(mass @ (grid - mean) ** 2))
    log_evidence = float(jax.nn.logsumexp(log_joint) + jnp.log(grid[1] - grid[0]))
    trace = pfbr.run(LocalLevel(), stream, num_particles=128, history=32)
    parameters = trace[-1].parameters
    assert abs(parameters.mean()["log_step"] - mean) < 0.35 * std
    assert 0.7 < parameters.std()["log_step"] / std < 1.3
    assert abs(trace.info.log_evidence[-1] - log_evidence) < 0.6
    assert trace.info.exact.all()
    assert parameters.samples["log_step"].shape == (128,)


def test_a_method_that_cannot_learn_parameters_says_so():
    with pytest.raises(InputError, match="parameters beside its state"):
        pfbr.Session(LocalLevel(), method="gaussian")
