"""Where no row is kept: log target and score of the past, exact at every particle, continued between them.

Every row that is weighed adds its value and score at the particles, so that there both are known. A move asks for them
elsewhere: the prior is known there too, and what the rows say is continued (`continuation.py`).
"""

from typing import Any

import equinox as eqx
import jax
from jax import Array
from jax import numpy as jnp

from pfbr.inference.adaptive.static.continuation import Continuation, fit_continuation
from pfbr.inference.adaptive.static.target import Evaluation, Target
from pfbr.particles.whitening import Whitening


class Carried(eqx.Module):
    """Of prior · past at the particles, up to a constant."""

    values: Array  # (n,)
    scores: Array  # (n, d)
    variance: Array  # of the mean, in posterior variances, by what continuing it has cost so far
    misfit: Array  # nats²: the same as a variance of the log density over the cloud

    def add(self, values: Array, scores: Array) -> "Carried":
        total = self.values + values
        level = jnp.max(jnp.where(jnp.isfinite(total), total, -jnp.inf))
        total = total - jnp.where(jnp.isfinite(level), level, 0)
        return Carried(total, self.scores + scores, self.variance, self.misfit)

    def continuation(self, target: Target, points: Array, log_weights: Array) -> Continuation:
        return fit_continuation(target.log_prior, self.values, self.scores, points, log_weights)


def evaluate_carried(target: Target, continuation: Continuation, first: Array, points: Array, row: Any) -> Evaluation:
    """The past as it is carried, times the new row; before the first row the prior itself, which is known."""
    prior, prior_score = jax.vmap(jax.value_and_grad(target.log_prior))(points)
    rows, pull_back = jax.vjp(continuation.log_likelihood, points)
    (row_scores,) = pull_back(jnp.ones_like(rows))  # points do not depend on each other
    past, past_score = prior + rows, prior_score + row_scores
    new, new_score = jax.vmap(jax.value_and_grad(lambda x: target.log_new(x, row)))(points)
    new = jnp.where(jnp.isnan(new), -jnp.inf, new)
    # outside of the prior's support stays outside, whatever the continuation says
    past = jnp.where(jnp.isfinite(prior), past, -jnp.inf)
    return Evaluation(jnp.where(first, prior, past), jnp.where(first, prior_score, past_score), new, new_score)


def no_past(points: Array) -> Carried:
    """Before the prior has been looked at."""
    zero = jnp.zeros((), points.dtype)
    return Carried(jnp.zeros_like(points[:, 0]), jnp.zeros_like(points), zero, zero)


def carried_prior(target: Target, points: Array) -> Carried:
    values, scores = jax.vmap(jax.value_and_grad(target.log_prior))(points)
    return no_past(points).add(values, scores)


def with_row(carried: Carried | None, target: Target, points: Array, row: Any) -> Carried | None:
    """The row added where it was weighed."""
    if carried is None:
        return None
    values, scores = jax.vmap(jax.value_and_grad(lambda x: target.log_new(x, row)))(points)
    return carried.add(jnp.where(jnp.isnan(values), -jnp.inf, values), scores)


def carried_law(law: Whitening, points: Array) -> Carried:
    """Of a normal law, in closed form."""
    white = law.whiten(points)
    zero = jnp.zeros((), points.dtype)
    return Carried(-0.5 * jnp.sum(white**2, axis=1), -white @ law.inverse_scale, zero, zero)
