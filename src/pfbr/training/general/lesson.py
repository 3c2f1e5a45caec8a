"""One problem as a lesson: how uneven the map leaves the weights of a cloud."""

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array

from pfbr.flow.transport.known import Known
from pfbr.flow.transport.transport import Transport
from pfbr.training.problems.problem import Problem
from pfbr.training.problems.term import Kind
from pfbr.typing import PerParticle, Points, Scalar

LARGEST = 30.0  # nats by which a log weight may go astray; beyond, how far no longer matters
WORTH = 4.0  # of squared nats: where the loss turns from squares to logarithms


class Begun(eqx.Module):
    """A cloud with a share of the observation in it, and what is known there of its law."""

    points: Points
    known: Known


def lesson_weights(
    transport: Transport, kinds: tuple[Kind, ...], problem: Problem, clouds: Array, late: Array, shares: Array, by_map
) -> PerParticle:
    """Log weights after moving from the cloud with the share number `late` in it to the posterior. `by_map`: that cloud
    is made by the map from the first one, as in a stream, instead of drawn, and so is what is known of its law."""
    equal = jnp.full(clouds.shape[1], 1 / clouds.shape[1], clouds.dtype)
    each = jax.vmap(jax.value_and_grad(lambda x, share: problem.log_until(kinds, x, share)), (0, None))
    new = lambda share: jax.vmap(jax.value_and_grad(lambda x: share * problem.log_new(kinds, x)))
    share, still = shares[late], jax.lax.stop_gradient(transport)

    def drawn() -> Begun:
        return Begun(clouds[late], Known(*each(clouds[late], share)))

    def made() -> Begun:
        known = Known(*each(clouds[0], shares[0]))
        after = still(clouds[0], equal, known, new(share), with_scores=True)
        assert after.scores is not None  # asked for
        begun = Begun(after.points, Known(known.values - after.log_det, after.scores))
        fine = jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(begun)]).all()
        return jax.lax.cond(fine, lambda: begun, drawn)

    begun = jax.lax.cond(by_map & (late > 0), made, drawn)
    after = transport(begun.points, equal, begun.known, new(1 - share))
    return each(after.points, jnp.ones((), share.dtype))[0] - begun.known.values + after.log_det


def loss(log_weights: PerParticle) -> Scalar:
    """−log of the share of the ESS that is left, which single particles left behind decide, and log(1 + 4 Var) in
    squared nats and about the median, which sees those with no weight as well."""
    away = log_weights - jnp.median(log_weights)
    away = LARGEST * jnp.tanh(away / LARGEST)
    lost = jax.nn.logsumexp(2 * away) - 2 * jax.nn.logsumexp(away) + jnp.log(float(len(away)))
    return lost + 0.25 * jnp.log1p(WORTH * jnp.mean(away**2))
