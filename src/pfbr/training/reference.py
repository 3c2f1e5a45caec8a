"""Reference statistics: the features of every step of streams like those that an operator was trained on."""

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.errors import ModelError
from pfbr.inference.method import step_key
from pfbr.inference.ood import NAMES, ReferenceStatistics, features
from pfbr.inference.operator import Operator
from pfbr.models.base import Model, has_observations
from pfbr.training.tasks import Family, ModelFamily
from pfbr.typing import Key


def learn_reference_statistics(
    key: Key, operator: Operator, law: Model | Family, *, num_particles: int = 256, length: int = 25, streams: int = 16
) -> ReferenceStatistics:
    """Features of every step of streams like those that the operator was trained on: of a family, or of one model."""
    if isinstance(law, Model) and not has_observations(law):
        raise ModelError(
            f"{type(law).__name__} has no `sample_observation(key, x)`, against which a "
            "shift is measured. Add the method, or leave the reference out."
        )
    family = ModelFamily(law) if isinstance(law, Model) else law
    seen = _simulated(key, operator, family, num_particles, length, streams)
    mean = jnp.mean(seen, axis=0)
    cov = (seen - mean).T @ (seen - mean) / seen.shape[0]
    # features that never vary (a Gaussian likelihood leaves no curvature) may not vary a little without alarm
    scale = jnp.linalg.cholesky(cov + 1e-4 * jnp.eye(cov.shape[0]))
    return ReferenceStatistics(mean, jnp.linalg.inv(scale))


@eqx.filter_jit
def _simulated(key, operator, family, num_particles, length, streams) -> Float[Array, "s f"]:
    def one(stream_key):
        data_key, run_key = jax.random.split(stream_key)
        task = family.sample(data_key, length)

        def one_step(particles, row):
            model, likelihood = row.likelihood(task.model)
            step = operator.propose(step_key(run_key, row.number), model, particles, likelihood)
            return step.after, features(step.prior.points, likelihood)

        start = operator.init(step_key(run_key, 0), task.first_model, num_particles)
        return jax.lax.scan(one_step, start, task.rows)[1]

    found = jax.vmap(one)(jax.random.split(key, streams)).reshape(-1, len(NAMES))
    return jnp.where(jnp.isfinite(found), found, 0.0)
