"""What the method for static unknowns carries from row to row, its settings, and what it says of a step."""

from enum import IntEnum
from typing import Any

import equinox as eqx
from jax import Array
from jax import numpy as jnp

from pfbr.inference.adaptive.static.carried import Carried, no_past
from pfbr.inference.adaptive.static.kernels import Tuning, initial_tuning
from pfbr.inference.adaptive.static.past import Past, empty_past
from pfbr.inference.adaptive.static.surrogate import Surrogate, no_surrogate
from pfbr.inference.adaptive.static.weights import uniform_log_weights
from pfbr.particles.whitening import Whitening, whitening_of


class StaticSettings(eqx.Module):
    """Settings, each with its reason."""

    weigh_ess: float = eqx.field(static=True, default=0.45)  # below, weights cost more than half the particles
    affine_ess: float = eqx.field(static=True, default=0.85)  # a map is taken only where it is all but exact
    temper_ess: float = eqx.field(static=True, default=0.4)
    early_ess: float = eqx.field(static=True, default=0.7)  # for the first rows: shorter steps lose less of the tails
    memory: float = eqx.field(static=True, default=0.3)  # 0.3² of the resampling noise is left: 5 % of the error
    memory_between: float = eqx.field(static=True, default=0.5)  # on the way the next stage moves again
    least_moves: int = eqx.field(static=True, default=2)
    early_rows: int = eqx.field(static=True, default=32)  # what counts as few
    early_rounds: int = eqx.field(static=True, default=3)  # tails of scales are found from where the last round ended
    fresh_ess: float = eqx.field(static=True, default=0.5)  # of the particles' number, among sixteen times as many
    early_moves: int = eqx.field(static=True, default=60)  # more of them for the first rows, where they are cheap
    most_moves: int = eqx.field(static=True, default=200)
    most_moves_between: int = eqx.field(static=True, default=30)
    max_stages: int = eqx.field(static=True, default=300)  # vague priors need tens; bounded, so that a row ends


class Move(IntEnum):
    WEIGHED = 0
    AFFINE = 1
    TEMPERED = 2
    CONJUGATE = 3


class StaticState(eqx.Module):
    points: Array  # (n, d)
    log_weights: Array  # (n,) normalised
    law: Whitening  # of the target at the last rejuvenation, as its scores described it
    past: Past
    surrogate: Surrogate
    rejuvenations: Array  # int32
    tuning: Tuning
    variance: Array  # of the mean, in posterior variances, as of the last rejuvenation
    steps: Array  # int32 rows seen
    misfit: Array  # of the closed form so far; infinite once it has been left
    log_evidence: Array  # of the rows so far: to tell what a cloud has missed while rows are few
    carried: Carried | None  # what stands for the past where no row is kept


class StaticInfo(eqx.Module):
    ess: Array
    pareto_k: Array
    log_predictive: Array
    flagged: Array
    exact: Array
    move: Array
    rejuvenations: Array
    acceptance: Array
    stages: Array
    moves: Array
    error: Array  # what the error of the mean is thought to be (Mahalanobis over √d)
    misfit: Array  # nats²: variance over the cloud of what stands for rows that are not kept
    drift: Array  # of the mean by the moves after the row was in, in standard deviations; NaN where there were none
    stein: Array  # the error from the scores alone; NaN where they were not needed


def init(key: Array, points: Array, row: Any, *, history: int = 4096) -> StaticState:
    """Equally weighted draws from the prior, and room for `history` rows like the example."""
    n, d = points.shape
    equal = uniform_log_weights(n, points.dtype)
    return StaticState(
        points,
        equal,
        whitening_of(points),
        empty_past(row, history),
        no_surrogate(d, points.dtype),
        jnp.zeros((), jnp.int32),
        initial_tuning(d, points.dtype),
        jnp.asarray(1 / n, points.dtype),
        jnp.zeros((), jnp.int32),
        jnp.full((), jnp.inf, points.dtype),
        jnp.zeros((), points.dtype),
        None if history else no_past(points),
    )
