"""How unlike what an operator is used to is this step: simple features of set and likelihood, and their distance."""

import dataclasses
import json

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.errors import ModelError
from pfbr.flow.likelihood import Likelihood
from pfbr.flow.velocities.affine import affine_part, view
from pfbr.inference.operator import Operator
from pfbr.models.base import Model, StateSpaceModel, has_observations
from pfbr.training.tasks import Family, ModelFamily
from pfbr.typing import Key, Matrix, Points, Scalar

NAMES = ("sharpness", "surprise", "curvature left", "skewness", "kurtosis")


def features(points: Points, likelihood: Likelihood) -> Float[Array, " f"]:
    """Five numbers in the frame of the set, so that neither place nor scale of the problem matters.

    log sharpness: root mean square of the whitened scores. log surprise: their mean, a push all particles agree on.
    Curvature left: the share of the scores that is not affine, 0 for a Gaussian likelihood. Skewness and kurtosis: root
    mean square over coordinates of the set's third and fourth moments, beyond those of a normal.
    """
    seen = view(points, likelihood)
    push, half_slope = affine_part(seen)
    left = seen.scores - push - seen.points @ (2 * half_slope)
    power = jnp.mean(jnp.sum(seen.scores**2, axis=-1)) + 1e-12
    skewness = jnp.sqrt(jnp.mean(jnp.mean(seen.points**3, axis=0) ** 2))
    kurtosis = jnp.sqrt(jnp.mean((jnp.mean(seen.points**4, axis=0) - 3.0) ** 2))
    return jnp.stack(
        [
            0.5 * jnp.log(power),
            0.5 * jnp.log(jnp.sum(push**2) + 1e-6),
            jnp.mean(jnp.sum(left**2, axis=-1)) / power,
            skewness,
            kurtosis,
        ]
    )


class Reference(eqx.Module):
    """Mean and spread of the features on streams the operator is used to."""

    mean: Float[Array, " f"]
    unscale: Matrix

    def distance(self, points: Points, likelihood: Likelihood) -> Scalar:
        """Mahalanobis distance over √(number of features): about 1 for a step like those seen; 5 is far away."""
        z = self.unscale @ (features(points, likelihood) - self.mean)
        return jnp.sqrt(jnp.mean(z**2))


def learn_reference(
    key: Key, operator: Operator, law: Model | Family, *, num_particles: int = 256, length: int = 25, streams: int = 16
) -> Reference:
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
    return Reference(mean, jnp.linalg.inv(scale))


def remember(operator: Operator, reference: Reference) -> Operator:
    """The operator with what it is used to among its provenance, so that a file says it."""
    known = {"mean": np.asarray(reference.mean).tolist(), "unscale": np.asarray(reference.unscale).tolist()}
    return dataclasses.replace(operator, provenance=json.dumps(json.loads(operator.provenance) | {"used_to": known}))


def remembered(operator: Operator) -> Reference | None:
    """What the operator is used to, if it was told; one that needs no training is used to nothing."""
    known = json.loads(operator.provenance).get("used_to")
    return None if known is None else Reference(jnp.asarray(known["mean"]), jnp.asarray(known["unscale"]))


@eqx.filter_jit
def _simulated(key, operator, family, num_particles, length, streams) -> Float[Array, "s f"]:
    def one(stream_key):
        data_key, init_key, steps_key = jax.random.split(stream_key, 3)
        task = family.sample(data_key, length)
        model, observations = task.model, task.observations

        def advance(state, inputs):
            step_key, observation = inputs
            prior = state.particles
            if isinstance(model, StateSpaceModel):
                prior = operator.predict(jax.random.split(step_key)[0], model, state.particles)
            found = features(prior.points, Likelihood(model, observation))
            return operator.update(step_key, model, state, observation)[0], found

        start = operator.init(init_key, model, num_particles)
        return jax.lax.scan(advance, start, (jax.random.split(steps_key, length), observations))[1]

    found = jax.vmap(one)(jax.random.split(key, streams)).reshape(-1, len(NAMES))
    return jnp.where(jnp.isfinite(found), found, 0.0)
