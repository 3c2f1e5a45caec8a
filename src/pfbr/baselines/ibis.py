"""Reweight; when few particles are left, temper, resample, and move by Markov chains on all stored data: exact in the
limit, and dearer with every datum.

Follows Chopin, "A sequential particle filter method for static models" (2002), with the newest observation let in by
shares that keep half the effective sample size (Del Moral, Doucet and Jasra 2006), which vague priors need.
"""

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Int

from pfbr.baselines import edge
from pfbr.flow.likelihood import Likelihood
from pfbr.inference.history import History, check_capacity, empty_history
from pfbr.inference.info import Info, Move
from pfbr.inference.method import Method
from pfbr.models.base import Model
from pfbr.particles.particles import Particles, equally_weighted, ess, normalise
from pfbr.particles.resampling import check_scheme, check_threshold, resample
from pfbr.particles.tempering_share import tempering_share
from pfbr.particles.whitening import whitening_of
from pfbr.typing import Key, Observation, PerParticle, Scalar

MOST_SHARES = 100
SIZES = (0.05, 2.38)  # of random walks, in spreads over √d: log-uniform, so that some fit wherever a particle stands


class IBISState(eqx.Module):
    """Weighted particles and all data so far."""

    current: Particles
    history: History


class _Way(eqx.Module):
    """The carry of tempering: particles for prior · past · newᵗ."""

    key: Key
    t: Scalar
    particles: Particles
    gained: Scalar  # log evidence
    acceptance: Scalar
    shares: Int[Array, ""]


class IBIS(Method):
    """w ← w p(o | x); when the effective sample size falls: temper, and after each share resample and make `moves`
    Metropolis–Hastings steps.

    Even moves propose from a Gaussian fitted to the particles, odd ones walk at random with up to 2.38/√d of their
    spread: the first mixes at once where the posterior is nearly Gaussian, the second works where it is not.
    """

    resampling: str = eqx.field(static=True, default="systematic", converter=check_scheme)
    threshold: float = eqx.field(static=True, default=0.5, converter=check_threshold)
    moves: int = eqx.field(static=True, default=20)
    capacity: int = eqx.field(static=True, default=256, converter=check_capacity)

    def init(self, key: Key, model: Model, num_particles: int) -> IBISState:
        edge.accept(self, model, num_particles)
        start = equally_weighted(edge.prior_points(key, model, num_particles))
        return IBISState(start, empty_history(model, self.capacity))

    def update(self, key: Key, model: Model, state: IBISState, observation: Observation) -> tuple[IBISState, Info]:
        observation = edge.accept_observation(model, observation)
        likelihood = Likelihood(model, observation)
        before = state.current
        log_weights = before.log_weights + likelihood.values(before.points)
        left = ess(log_weights)
        poor = ~(left > self.threshold * before.num_particles * (1 + 1e-5))

        def weighed():
            weighted = Particles(before.points, normalise(log_weights))
            return weighted, jax.nn.logsumexp(log_weights), jnp.full((), jnp.nan)

        current, gained, accepted = jax.lax.cond(
            poor, lambda: self._temper(key, model, before, state.history, likelihood), weighed
        )
        info = Info(
            ess=left,
            log_predictive=gained,
            move=jnp.where(poor, int(Move.TEMPERED), int(Move.WEIGHED)),
            details={"acceptance": accepted},  # NaN where nothing had to move
        )
        return IBISState(current, state.history.append(model, observation)), info

    def particles(self, state: IBISState) -> Particles:
        return state.current

    def unsupported(self, model: Model) -> str | None:
        return edge.needs_rest(model, "BootstrapSMC")

    def _temper(self, key: Key, model: Model, before: Particles, history: History, likelihood: Likelihood):
        def log_past(points):
            return jax.vmap(lambda x: model.log_prior(x) + history.log_likelihood(model, x))(points)

        def let_in(way: _Way) -> _Way:
            key, resample_key, moves_key = jax.random.split(way.key, 3)
            values = likelihood.values(way.particles.points)
            left = 1 - way.t
            enough = 0.5 * way.particles.num_particles
            share = tempering_share(way.particles.log_weights, values, left, enough, shortest=1e-10)
            share = jnp.where(way.shares == MOST_SHARES - 1, left, share)
            log_weights = way.particles.log_weights + share * values
            weighted = Particles(way.particles.points, normalise(log_weights))
            t = jnp.where(share >= left, 1.0, way.t + share)
            log_target = lambda points: log_past(points) + t * likelihood.values(points)
            moved, rate = self._moved(resample_key, moves_key, weighted, log_target)
            gained = way.gained + jax.nn.logsumexp(log_weights)
            return _Way(key, t, moved, gained, rate, way.shares + 1)

        zero = jnp.zeros((), before.points.dtype)
        begin = _Way(key, zero, Particles(before.points, before.log_weights), zero, zero, jnp.zeros((), jnp.int32))
        end = jax.lax.while_loop(lambda way: (way.t < 1) & (way.shares < MOST_SHARES), let_in, begin)
        return end.particles, end.gained, end.acceptance

    def _moved(self, resample_key: Key, moves_key: Key, weighted: Particles, log_target):
        n, d = weighted.points.shape
        frame = whitening_of(weighted.points, jnp.exp(weighted.log_weights))
        kept = resample(resample_key, weighted, self.resampling)

        def fitted(white) -> PerParticle:
            return -0.5 * jnp.sum(white**2, axis=1)

        def move(carry, inputs):
            points, current = carry
            i, move_key = inputs
            noise_key, size_key, accept_key = jax.random.split(move_key, 3)
            noise = jax.random.normal(noise_key, (n, d), points.dtype)
            least, most = jnp.log(jnp.asarray(SIZES))
            size = jnp.exp(jax.random.uniform(size_key, (n, 1), minval=least, maxval=most)) / jnp.sqrt(d)
            independent = i % 2 == 0
            proposed = jnp.where(independent, frame.restore(noise), points + frame.vectors(size * noise))
            value = log_target(proposed)
            back = fitted(frame.whiten(points)) - fitted(noise)
            log_ratio = value - current + jnp.where(independent, back, 0.0)
            accept = jnp.log(jax.random.uniform(accept_key, (n,))) < log_ratio
            points = jnp.where(accept[:, None], proposed, points)
            return (points, jnp.where(accept, value, current)), jnp.mean(accept)

        inputs = (jnp.arange(self.moves), jax.random.split(moves_key, self.moves))
        (points, _), rates = jax.lax.scan(move, (kept.points, log_target(kept.points)), inputs)
        return Particles(points, kept.log_weights), jnp.mean(rates)
