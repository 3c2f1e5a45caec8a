"""How wrong an operator is on a stream, without knowing the posterior: the negative ELBO of every stage."""

import jax
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.flow.likelihood import Likelihood
from pfbr.inference.operator import Operator, predictive_log_density
from pfbr.models.base import Model, StateSpaceModel
from pfbr.particles.particles import Particles, equally_weighted
from pfbr.typing import Key, Observations


def stage_losses(
    key: Key,
    operator: Operator,
    model: Model,
    observations: Observations,
    num_particles: int,
    *,
    through_stages: bool = False,
) -> Float[Array, " t"]:
    """mean_n [log q_m(x_m^n) − log p(x_m^n, O_m)] for m = 1 … T.

    Each term is KL(q_m ‖ p(x | O_m)) minus the log evidence, which no operator can change. With dynamics the joint
    density of a stage is p(o_m | x) π̂(x), π̂ the predictive density of the particles.

    Gradients stop between stages unless `through_stages`: an operator then answers for its own update of the
    particles that it was given, and not for what later updates make of them.
    """
    init_key, steps_key = jax.random.split(key)
    indices = jnp.arange(observations.shape[0])

    def log_joint(points, stage):
        """log p(x, O_m) of a model without dynamics: all observations up to this stage."""
        each = jax.vmap(jax.vmap(model.log_likelihood, (None, 0)), (0, None))(points, observations)
        seen = jnp.sum(jnp.where(indices <= stage, each, 0.0), axis=1)
        return jax.vmap(model.log_prior)(points) + seen

    def stage_loss(particles: Particles, inputs):
        stage, step_key, observation = inputs
        predict_key, move_key = jax.random.split(step_key)
        if not through_stages:
            particles = jax.lax.stop_gradient(particles)
        prior = operator.predict(predict_key, model, particles)
        likelihood = Likelihood(model, observation)
        moved = operator.move(move_key, prior, likelihood)
        if not isinstance(model, StateSpaceModel):
            target = log_joint(moved.points, stage)
        else:
            predictive = predictive_log_density(
                model, particles.points, prior.points, moved.points, how=operator.predictive
            )
            target = likelihood.values(moved.points) + predictive
        after = equally_weighted(moved.points, moved.log_density)
        return after, jnp.mean(moved.log_density - target)

    start = operator.init(init_key, model, num_particles).particles
    keys = jax.random.split(steps_key, observations.shape[0])
    return jax.lax.scan(stage_loss, start, (indices, keys, observations))[1]
