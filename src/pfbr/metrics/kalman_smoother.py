"""Exact states of a linear-Gaussian stream given all of it: the recursion of Rauch, Tung and Striebel (1965)."""

import jax
from jax import numpy as jnp

from pfbr.inference.method import Stream
from pfbr.metrics.truth import GaussianTruth, bound_to, kalman
from pfbr.models.base import Model
from pfbr.models.conditions import stays
from pfbr.typing import Observations


def kalman_smoother(model: Model, stream: Stream | Observations) -> GaussianTruth:
    """Posteriors (T, …) of each stage given all T; the log evidence is that of the filter."""
    stream = stream if isinstance(stream, Stream) else Stream(jnp.asarray(stream))
    filtered = kalman(model, stream)
    times = jnp.arange(1.0, len(stream.observations) + 1) if stream.dt is None else jnp.cumsum(stream.dt)

    def back(later, stage):
        mean, cov, row, time = stage
        here = bound_to(model, row, time)
        system = here.linear_gaussian()
        assert system is not None  # `kalman` says so
        A, Q, a = system.A, system.Q, jnp.zeros_like(mean) if system.a is None else system.a
        still = stays(here)
        if still is not None:
            A, Q = jnp.where(still, jnp.eye(A.shape[0]), A), jnp.where(still, 0.0, Q)
            a = jnp.where(still, 0.0, a)
        predicted = A @ cov @ A.T + Q
        gain = jnp.linalg.solve(predicted, A @ cov).T
        mean = mean + gain @ (later[0] - A @ mean - a)
        cov = cov + gain @ (later[1] - predicted) @ gain.T
        return (mean, cov), (mean, cov)

    last = (filtered.mean[-1], filtered.cov[-1])
    following = jax.tree.map(lambda leaf: leaf[1:], (stream, times))
    _, (means, covs) = jax.lax.scan(back, last, (filtered.mean[:-1], filtered.cov[:-1], *following), reverse=True)
    return GaussianTruth(
        jnp.concatenate([means, last[0][None]]), jnp.concatenate([covs, last[1][None]]), filtered.log_evidence
    )
