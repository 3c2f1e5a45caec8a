"""The streams that methods are tested on, drawn far from those that anything was trained or tuned on."""

import jax
from jax import numpy as jnp

from pfbr.models.base import Model
from pfbr.models.simulate import simulate
from pfbr.paper.contract import Run

# Seeds a long way from those of training (0 and up), so that no stream is ever used twice.
TEST_SEED, TUNING_SEED, FUNCTION_SEED = 70_000, 80_000, 90_000


def draw_streams(run: Run, model: Model, num_streams: int, num_stages: int, *, at=None) -> jax.Array:
    """The test streams: the user's own, or fresh ones from the model."""
    if run.observations is not None:
        return jnp.asarray(run.observations, dtype=float)
    keys = jax.random.split(jax.random.key(TEST_SEED + run.seed), num_streams)
    return jax.jit(jax.vmap(lambda key: simulate(key, model, num_stages, at=at).observations))(keys)
