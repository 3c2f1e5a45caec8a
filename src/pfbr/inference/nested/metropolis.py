"""The outer cloud resampled and moved by Metropolis steps, each judged by filters over the rows kept (SMC squared).

Short steps keep a filter's seed, so that both sides of a comparison meet the same randomness (correlated
pseudo-marginal moves, Deligiannidis, Doucet and Pitt 2018); long ones, from the cloud's Gaussian, bring a new seed.
The law of the parameters is exact for any number of inner particles (Chopin, Jacob and Papaspiliopoulos 2013).
"""

import jax
from jax import numpy as jnp

from pfbr.inference.nested.cloud import OuterCloud, fresh_seeds, log_start
from pfbr.inference.nested.inner import InnerFilters
from pfbr.inference.nested.kept import KeptRows
from pfbr.inference.nested.proposal import proposal_of
from pfbr.particles.resampling import systematic
from pfbr.typing import Key, Scalar

MOVES = 3  # after a first round that looks at the cloud itself


def moved(key: Key, filters: InnerFilters, kept: KeptRows, cloud: OuterCloud) -> tuple[OuterCloud, Scalar]:
    """The cloud, equally weighted, and the share of its moves that were accepted."""
    n, p = cloud.thetas.shape
    resample_key, moves_key = jax.random.split(key)
    proposal = proposal_of(cloud.thetas, cloud.log_weights)
    chosen = systematic(resample_key, cloud.log_weights, n)
    first_alike = jnp.argmax(cloud.origin[:, None] == cloud.origin, axis=1).astype(jnp.int32)
    even = jnp.full_like(cloud.log_weights, -jnp.log(float(n)))
    begun = OuterCloud(
        cloud.thetas[chosen],
        cloud.seeds[chosen],
        jax.tree.map(lambda leaf: leaf[chosen], cloud.filters),
        even,
        cloud.log_past[chosen],
        first_alike[chosen],
    )

    def one(now: OuterCloud, numbered):
        number, step_key = numbered
        kind_key, noise_key, size_key, seed_key, accept_key = jax.random.split(step_key, 5)
        long = jax.random.uniform(kind_key, (n,)) < 0.5
        size = jnp.exp(jax.random.uniform(size_key, (n, 1), minval=-1.5, maxval=0.3))
        near = now.thetas + size * proposal.frame.vectors(jax.random.normal(noise_key, (n, p), now.thetas.dtype))
        drawn = jnp.where(long[:, None], proposal.draw(noise_key, n), near)
        first = number == 0  # looks at the cloud itself: rows may have gone since it was last judged
        drawn = jnp.where(first, now.thetas, drawn)
        start = log_start(filters, kept, drawn)
        possible = jnp.isfinite(start)
        thetas = jnp.where(possible[:, None], drawn, now.thetas)
        seeds = jnp.where((long & ~first)[:, None], fresh_seeds(seed_key, n), now.seeds)
        clouds, log_past = kept.replayed(filters, thetas, seeds)
        log_ratio = start + log_past - log_start(filters, kept, now.thetas) - now.log_past
        log_ratio += jnp.where(long, proposal.log_density(now.thetas) - proposal.log_density(drawn), 0.0)
        draw = jnp.log(jax.random.uniform(accept_key, (n,)))
        accept = first | (possible & (draw < jnp.where(jnp.isnan(log_ratio), -jnp.inf, log_ratio)))

        def pick(new, old):
            return jnp.where(accept.reshape(-1, *[1] * (new.ndim - 1)), new, old)

        origin = jnp.where(accept & ~first, n + jnp.arange(n, dtype=jnp.int32), now.origin)
        after = OuterCloud(
            pick(thetas, now.thetas),
            pick(seeds, now.seeds),
            jax.tree.map(pick, clouds, now.filters),
            even,
            pick(log_past, now.log_past),
            origin,
        )
        return after, jnp.mean(accept)

    numbers = (jnp.arange(MOVES + 1), jax.random.split(moves_key, MOVES + 1))
    after, rates = jax.lax.scan(one, begun, numbers)
    return after, jnp.mean(rates[1:])
