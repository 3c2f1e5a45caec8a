"""The simplest method that learns: quick to compile, right where there are particles enough."""

import jax

from pfbr.baselines import Prior
from pfbr.inference.info import Info
from pfbr.particles.particles import Particles, normalise


class Weighing(Prior):
    """Draws of the prior, weighed by what was seen; for static models."""

    def update(self, key, model, state, observation):
        values = jax.vmap(model.log_likelihood, (0, None))(state.points, observation)
        return Particles(state.points, normalise(state.log_weights + values)), Info()
