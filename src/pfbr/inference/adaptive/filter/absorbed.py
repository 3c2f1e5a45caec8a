"""What became of a cloud that took in an observation, and by which kind of move."""

from typing import Any

import equinox as eqx
from jax import numpy as jnp
from jaxtyping import Array

from pfbr.inference.adaptive.filter.cloud import Cloud

WEIGHED, FLOWED, TEMPERED, SECOND_LOOK, OVERSAMPLED = 0, 1, 2, 3, 4


class Absorbed(eqx.Module):
    cloud: Cloud
    log_predictive: Array
    move: Array
    rounds: Array
    acceptance: Array  # of the last moves; 1 where none was needed
    width: Array  # of the kernels; 1 where none was needed
    unfinished: Array  # the rounds were used up before all was absorbed
    error: Array  # of the mean, in standard deviations; 0: not known
    beyond: Array  # the share of the cloud that lies where no predicted particle vouches for it
    paths: Any  # Paths or a Window that end at the particles; None: there are none
    renewed: Array  # paths were moved from their start: copies of an ancestor are no longer that
    learned: Array  # moved by the learned map


def absorbed(
    cloud, log_predictive, move, rounds=0, acceptance=1.0, width=1.0, unfinished=False, paths=None
) -> Absorbed:
    dtype = cloud.points.dtype
    return Absorbed(
        cloud,
        jnp.asarray(log_predictive, dtype),
        jnp.asarray(move, jnp.int32),
        jnp.asarray(rounds, jnp.int32),
        jnp.asarray(acceptance, dtype),
        jnp.asarray(width, dtype),
        jnp.asarray(unfinished),
        jnp.zeros((), dtype),
        jnp.zeros((), dtype),
        paths,
        jnp.array(False),
        jnp.array(False),
    )
