"""Log density and score of prior · past · new rowᵗ at all particles, the past summed in blocks of batched products."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
from jax import Array
from jax import numpy as jnp

from pfbr.inference.adaptive.static.past import Past
from pfbr.inference.adaptive.static.surrogate import Surrogate


class Target(eqx.Module):
    """The model, for one point (d,) and one row."""

    log_prior: Callable
    log_likelihood: Callable
    sample_prior: Callable | None = None  # (key, number) to points; None: no fresh looks
    sign: float = eqx.field(static=True, default=1.0)  # of the new row: −1 takes one back that is in the past

    def log_new(self, x: Array, row: Any) -> Array:
        return self.sign * self.log_likelihood(x, row)

    def inverse(self) -> "Target":
        return Target(self.log_prior, self.log_likelihood, self.sample_prior, -self.sign)


class Evaluation(eqx.Module):
    """What is known at each particle: the past (with the prior) and the new row, apart, so that any power t is free."""

    past: Array  # (n,) relative to the rows' values at the reference point
    past_score: Array  # (n, d)
    new: Array  # (n,)
    new_score: Array  # (n, d)

    def value(self, t: Array) -> Array:
        # 0 · (−inf) would be NaN at t = 0; −inf anywhere means outside of the support
        total = self.past + jnp.where(t > 0, t * self.new, 0)
        return jnp.where(jnp.isnan(total) | (total == jnp.inf), -jnp.inf, total)

    def score(self, t: Array) -> Array:
        """Zero where it is not finite: a Langevin step is then a plain random walk, and still valid."""
        total = self.past_score + t * self.new_score
        return jnp.where(jnp.all(jnp.isfinite(total), axis=1, keepdims=True), total, 0)

    def take(self, index: Array) -> "Evaluation":
        return jax.tree.map(lambda a: a[index], self)

    def where(self, accept: Array, other: "Evaluation") -> "Evaluation":
        pick = lambda a, b: jnp.where(accept.reshape((-1,) + (1,) * (a.ndim - 1)), a, b)
        return jax.tree.map(pick, self, other)


def row_values(target: Target, points: Array, row: Any) -> Array:
    """The new row's log likelihood at each particle; NaN counts as impossible."""
    values = jax.vmap(lambda x: target.log_new(x, row))(points)
    return jnp.where(jnp.isnan(values), -jnp.inf, values)


def evaluate(target: Target, points: Array, reference: Array, surrogate: Surrogate, past: Past, row: Any) -> Evaluation:
    """Each row counts relative to its value at one reference point, the same for all particles.

    Then the sum over thousands of rows is as small as the differences between particles, and float32 holds it.
    """
    prior, prior_score = jax.vmap(jax.value_and_grad(target.log_prior))(points)
    old, old_score = surrogate.value_and_score(points)

    def add_block(index, total):
        rows, real = past.block(index, row)
        at_reference = jax.vmap(lambda r: target.log_likelihood(reference, r))(rows)
        at_reference = jnp.where(jnp.isfinite(at_reference), at_reference, 0)

        def block_sum(x):
            values = jax.vmap(lambda r: target.log_likelihood(x, r))(rows)
            return jnp.sum(jnp.where(real, values - at_reference, 0))

        value, score = jax.vmap(jax.value_and_grad(block_sum))(points)
        return total[0] + value, total[1] + score

    start = (prior + old, prior_score + old_score)
    value, score = jax.lax.fori_loop(0, past.num_blocks, add_block, start)
    new, new_score = jax.vmap(jax.value_and_grad(lambda x: target.log_new(x, row)))(points)
    return Evaluation(value, score, jnp.where(jnp.isnan(new), -jnp.inf, new), new_score)
