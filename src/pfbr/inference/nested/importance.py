"""A new outer cloud by importance sampling: draws of a Gaussian, each with a filter over the rows kept.

The weight of a draw is start · likelihood / proposal, so that nothing of the old cloud enters but the proposal: errors
do not add up from one renewal to the next, and the mean weight is the evidence itself. Where the proposal was too far
from the target, the weighted draws give the next one (adaptive importance sampling).
"""

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Int

from pfbr.inference.nested.cloud import OuterCloud, fresh_seeds, log_start
from pfbr.inference.nested.inner import InnerFilters
from pfbr.inference.nested.kept import KeptRows
from pfbr.inference.nested.proposal import proposal_of
from pfbr.particles.particles import ess, normalise
from pfbr.typing import Key, Scalar

ROUNDS = 3  # at most: each runs all filters over all rows kept
GOOD = 0.25  # share of the draws that count at which no further round is made
GAIN = 1.5  # by which a round has to be better than the one before, for another one to be worth it


class Renewal(eqx.Module):
    """A weighted cloud, and the log of its mean weight: log evidence relative to the references."""

    cloud: OuterCloud
    log_mean: Scalar
    rounds: Int[Array, ""]
    gain: Scalar  # of effective sample size, in the last round


def renewed(key: Key, filters: InnerFilters, kept: KeptRows, cloud: OuterCloud) -> Renewal:
    n = cloud.thetas.shape[0]

    def further(carry: Renewal) -> Array:
        poor = (ess(carry.cloud.log_weights) < GOOD * n) & (carry.gain > GAIN)
        return (carry.rounds < ROUNDS) & ((carry.rounds == 0) | poor)

    def one_round(carry: Renewal) -> Renewal:
        draw_key, seed_key = jax.random.split(jax.random.fold_in(key, carry.rounds))
        before = carry.cloud
        proposal = proposal_of(before.thetas, before.log_weights)
        drawn = proposal.draw(draw_key, n)
        start = log_start(filters, kept, drawn)
        # draws that the prior rules out count nothing; what they stand for must still be parameters
        thetas = jnp.where(jnp.isfinite(start)[:, None], drawn, before.thetas)
        seeds = fresh_seeds(seed_key, n)
        clouds, log_past = kept.replayed(filters, thetas, seeds)
        values = start + log_past - proposal.log_density(drawn)
        log_mean = jax.nn.logsumexp(values) - jnp.log(float(n))
        alive = jnp.isfinite(log_mean)
        log_weights = jnp.where(alive, normalise(values), -jnp.log(float(n)))
        after = OuterCloud(thetas, seeds, clouds, log_weights, log_past, jnp.arange(n, dtype=jnp.int32))
        # a round in which nothing counted leaves the cloud that it began with
        after = jax.tree.map(lambda new, old: jnp.where(alive, new, old), after, before)
        gain = ess(log_weights) / ess(before.log_weights)
        return Renewal(after, log_mean, carry.rounds + 1, jnp.where(carry.rounds == 0, jnp.inf, gain))

    zero = jnp.zeros((), cloud.log_weights.dtype)
    begun = Renewal(cloud, zero - jnp.inf, jnp.zeros((), jnp.int32), zero + jnp.inf)
    return jax.lax.while_loop(further, one_round, begun)
