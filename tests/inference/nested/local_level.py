"""A level that wanders by an unknown amount, and its exact posterior: a grid over the amount with Kalman's evidence."""

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

import pfbr
from pfbr.metrics.truth import kalman
from pfbr.models import LinearDynamics

OBSERVATION_STD = 0.5


class LocalLevel(pfbr.StateSpaceModel):
    """Its noise as a function of normals: the filters look ahead."""

    dim: int = 1

    def sample_parameters(self, key):
        return {"log_step": -1.0 + jax.random.normal(key)}

    def log_parameters(self, params):
        return jax.scipy.stats.norm.logpdf(params["log_step"], -1.0, 1.0)

    def sample_prior(self, key):
        return jax.random.normal(key, (1,))

    def prior_from_normal(self, z):
        return z

    def log_prior(self, x):
        return jax.scipy.stats.norm.logpdf(x[0])

    def sample_transition(self, key, x, *, params):
        return self.transition_from_normal(x, jax.random.normal(key, (1,)), params=params)

    def transition_from_normal(self, x, z, *, params):
        return x + jnp.exp(params["log_step"]) * z

    def log_likelihood(self, x, observation):
        return jax.scipy.stats.norm.logpdf(observation[0], x[0], OBSERVATION_STD)


STREAM = np.cumsum(0.3 * np.random.default_rng(0).normal(size=25)) + OBSERVATION_STD * np.random.default_rng(1).normal(
    size=25
)


def evidence(log_step, stream):
    """Log evidence of a stream given the amount, after each row."""
    system = LinearDynamics(jnp.eye(1), jnp.eye(1), 1.0, OBSERVATION_STD)
    system = eqx.tree_at(lambda s: s.transition_std, system, jnp.exp(log_step))
    return kalman(system, jnp.asarray(stream[:, None], jnp.float32)).log_evidence


def exact(stream):
    """Mean and standard deviation of the log amount, and the log evidence."""
    grid = jnp.linspace(-5.0, 3.0, 161)
    log_joint = jax.vmap(lambda at: evidence(at, stream)[-1])(grid) + jax.scipy.stats.norm.logpdf(grid, -1.0, 1.0)
    mass = jax.nn.softmax(log_joint)
    mean = float(mass @ grid)
    std = float(jnp.sqrt(mass @ (grid - mean) ** 2))
    return mean, std, float(jax.nn.logsumexp(log_joint) + jnp.log(grid[1] - grid[0]))
