"""Cut a long stream: a later segment starts from the kernel estimate of the particles at the cut."""

import jax
from jax import numpy as jnp

from pfbr.errors import InputError
from pfbr.inference.operator import Operator
from pfbr.models.base import Model, StateSpaceModel
from pfbr.training.priors import PriorReplaced, kernel_prior
from pfbr.typing import Key, Observations


def segment(
    key: Key, operator: Operator, model: Model, observations: Observations, cut, length: int, num_particles: int
) -> tuple[Model, Observations]:
    """The task that begins after `cut` observations and has `length` of them.

    Its prior is π̂(x; X_cut), and the likelihoods of the earlier observations drop out of its loss, whose cost is
    quadratic in the length. The operator runs up to the cut without gradients; `cut` may be traced.
    """
    if isinstance(model, StateSpaceModel):
        raise InputError("a model with dynamics needs no segments: its loss is already one stage at a time.")
    init_key, steps_key = jax.random.split(key)
    frozen = jax.lax.stop_gradient(operator)

    def advance(m, state):
        return frozen.update(jax.random.fold_in(steps_key, m), model, state, observations[m])[0]

    state = jax.lax.while_loop(
        lambda carry: carry[0] < cut,
        lambda carry: (carry[0] + 1, advance(*carry)),
        (jnp.zeros((), jnp.int32), frozen.init(init_key, model, num_particles)),
    )[1]
    prior = kernel_prior(jax.lax.stop_gradient(state.particles.points))
    return PriorReplaced(model, prior), jax.lax.dynamic_slice_in_dim(observations, cut, length)
