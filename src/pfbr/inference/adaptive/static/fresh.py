"""A fresh look from the prior: while rows and unknowns are few, many prior draws weighed by all rows at once.

An arm or a mode that holds a hundredth of the posterior today may have held a thousandth of it a row ago, and a cloud
of hundreds of particles had none there. Sixteen times as many draws from the prior see it, and cost little while
rows are few. Their weights are exact; they are taken where enough of them count.
"""

from typing import Any

import equinox as eqx
import jax
from jax import Array
from jax import numpy as jnp

from pfbr.inference.adaptive.static.past import Past
from pfbr.inference.adaptive.static.target import Target
from pfbr.inference.adaptive.static.weights import clean
from pfbr.particles.particles import ess, normalise
from pfbr.particles.resampling import systematic

MOST_UNKNOWNS = 4  # in more, hardly a draw of the prior is near the posterior after a few rows
TIMES = 16  # as many draws as particles


class Fresh(eqx.Module):
    points: Array  # (n, d) equally weighted
    log_ratio: Array  # log evidence of the new row given the others
    log_evidence: Array  # of all rows
    ess: Array  # of all the draws


def fresh_look(key: Array, target: Target, past: Past, row: Any, num: int) -> Fresh:
    """`num` draws of prior · past · new row, by importance weights of many draws from the prior."""
    draw_key, resample_key = jax.random.split(key)
    points = target.sample_prior(draw_key, TIMES * num)

    def add_block(index, total):
        rows, real = past.block(index, row)
        values = jax.vmap(lambda x: jnp.sum(jnp.where(real, jax.vmap(lambda r: target.log_likelihood(x, r))(rows), 0)))
        return total + values(points)

    before = clean(jax.lax.fori_loop(0, past.num_blocks, add_block, jnp.zeros(len(points), points.dtype)))
    after = clean(before + jax.vmap(lambda x: target.log_new(x, row))(points))
    left = ess(after)
    chosen = systematic(resample_key, jnp.where(left > 0, normalise(after), 0), num)
    total = jax.nn.logsumexp(after)
    return Fresh(points[chosen], total - jax.nn.logsumexp(before), total - jnp.log(len(points)), left)


def no_look(points: Array) -> Fresh:
    zero = jnp.zeros((), points.dtype)
    return Fresh(points, zero, jnp.full_like(zero, -jnp.inf), zero)
