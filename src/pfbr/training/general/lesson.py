"""One problem as a lesson: how uneven the map leaves the weights of a cloud."""

import jax
from jax import numpy as jnp
from jaxtyping import Array

from pfbr.flow.transport.known import Known
from pfbr.flow.transport.transport import Transport
from pfbr.particles.particles import ess
from pfbr.training.problems.problem import Problem
from pfbr.training.problems.term import Kind
from pfbr.typing import PerParticle, Points, Scalar

LARGEST = 30.0  # nats by which a log weight may go astray; beyond, how far no longer matters
WORTH = 4.0  # of squared nats: where the loss turns from squares to logarithms


def moved(transport: Transport, kinds: tuple[Kind, ...], problem: Problem, cloud: Points, begun: Scalar, ended: Scalar):
    """A cloud with the share `begun` of the observation in it, moved to where it has `ended`; and the log weights."""
    each = jax.vmap(jax.value_and_grad(lambda x, share: problem.log_until(kinds, x, share)), (0, None))
    new = jax.vmap(jax.value_and_grad(lambda x: (ended - begun) * problem.log_new(kinds, x)))
    values, scores = each(cloud, begun)
    equal = jnp.full(len(cloud), 1 / len(cloud), cloud.dtype)
    after = transport(cloud, equal, Known(values, scores), new)
    return after.points, each(after.points, ended)[0] - values + after.log_det


def lesson_weights(
    transport: Transport, kinds: tuple[Kind, ...], problem: Problem, clouds: Array, late: Array, shares: Array, by_map
) -> PerParticle:
    """From the cloud with the share number `late` in it to the posterior. `by_map`: that cloud is made by the map from
    the first one, as in a stream, instead of drawn."""
    zero, one = jnp.zeros((), clouds.dtype), jnp.ones((), clouds.dtype)
    begun = shares[late]
    still = jax.lax.stop_gradient(transport)
    made = jax.lax.cond(
        by_map & (late > 0),
        lambda: moved(still, kinds, problem, clouds[0], zero, begun)[0],
        lambda: clouds[late],
    )
    made = jnp.where(jnp.isfinite(made).all(), made, clouds[late])
    return moved(transport, kinds, problem, made, begun, one)[1]


def loss(log_weights: PerParticle) -> Scalar:
    """−log of the share of the ESS that is left, which single particles left behind decide, and log(1 + 4 Var) in
    squared nats and about the median, which sees those with no weight as well."""
    away = log_weights - jnp.median(log_weights)
    away = LARGEST * jnp.tanh(away / LARGEST)
    lost = jax.nn.logsumexp(2 * away) - 2 * jax.nn.logsumexp(away) + jnp.log(float(len(away)))
    return lost + 0.25 * jnp.log1p(WORTH * jnp.mean(away**2))


def ess_share(log_weights: PerParticle) -> Scalar:
    """The effective sample size over the number of particles; what is not finite counts for nothing."""
    log_weights = jnp.where(jnp.isfinite(log_weights), log_weights, -jnp.inf)
    share = ess(log_weights) / log_weights.shape[0]
    return jnp.where(jnp.isfinite(share), share, 0.0)
