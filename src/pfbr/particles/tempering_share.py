"""How much of an observation to let in: the largest share of its log likelihood that leaves enough particles."""

import jax
from jax import numpy as jnp

from pfbr.particles.particles import ess
from pfbr.typing import PerParticle, Real, Scalar

HALVINGS = 24  # of a range in the logarithm: from 1e-10 to 1 the share is then known to a millionth of itself


def tempering_share(
    log_weights: PerParticle, log_likelihood: PerParticle, left: Scalar, least: Real, *, shortest: Real
) -> Scalar:
    """The largest share ≤ `left` that keeps the ESS at `least`, by bisection; at least `shortest`, so that tempering
    ends. In the logarithm, because under vague priors the first share may be 1e-8."""

    def enough(share):
        weighed = log_weights + share * log_likelihood
        return ess(jnp.where(jnp.isnan(weighed) | (weighed == jnp.inf), -jnp.inf, weighed)) >= least

    def halve(_, bounds):
        low, high = bounds
        middle = jnp.sqrt(low * high)
        fine = enough(middle)
        return jnp.where(fine, middle, low), jnp.where(fine, high, middle)

    low, _ = jax.lax.fori_loop(0, HALVINGS, halve, (jnp.minimum(shortest, left), left))
    return jnp.where(enough(left), left, low)
