"""Reweight, resample, and move by Markov chains on all stored data: exact in the limit, and dearer with every datum.

Follows Chopin, "A sequential particle filter method for static models" (2002).
"""

import equinox as eqx
import jax
from jax import numpy as jnp

from pfbr.baselines import edge
from pfbr.flow.likelihood import Likelihood
from pfbr.inference.history import History, check_capacity, empty_history
from pfbr.inference.info import Info, Move
from pfbr.inference.method import Method
from pfbr.models.base import Model
from pfbr.particles.particles import Particles, equally_weighted, ess, normalise, weighted_cov, weighted_mean
from pfbr.particles.resampling import check_scheme, check_threshold, resample
from pfbr.typing import Key, Observation


class IBISState(eqx.Module):
    """Weighted particles and all data so far."""

    current: Particles
    history: History


class IBIS(Method):
    """w ← w p(o | x); when the effective sample size falls: resample, then `moves` Metropolis–Hastings steps.

    Even moves propose from a Gaussian fitted to the particles, odd ones walk at random with 2.38/√d of their spread:
    the first mixes at once where the posterior is nearly Gaussian, the second works where it is not.
    """

    resampling: str = eqx.field(static=True, default="systematic", converter=check_scheme)
    threshold: float = eqx.field(static=True, default=0.5, converter=check_threshold)
    moves: int = eqx.field(static=True, default=10)
    capacity: int = eqx.field(static=True, default=256, converter=check_capacity)

    def init(self, key: Key, model: Model, num_particles: int) -> IBISState:
        edge.accept(self, model, num_particles)
        start = equally_weighted(edge.prior_points(key, model, num_particles))
        return IBISState(start, empty_history(model, self.capacity))

    def update(self, key: Key, model: Model, state: IBISState, observation: Observation) -> tuple[IBISState, Info]:
        observation = edge.accept_observation(model, observation)
        history = state.history.append(model, observation)
        log_weights = state.current.log_weights + Likelihood(model, observation).values(state.current.points)
        weighted = Particles(state.current.points, normalise(log_weights))
        poor = ess(log_weights) <= self.threshold * weighted.num_particles * (1 + 1e-5)
        renewed, accepted = jax.lax.cond(
            poor, lambda: self._renew(key, model, weighted, history), lambda: (weighted, jnp.nan)
        )
        info = Info(
            ess=ess(log_weights),
            log_predictive=jax.nn.logsumexp(log_weights),
            move=jnp.where(poor, int(Move.TEMPERED), int(Move.WEIGHED)),
            details={"acceptance": accepted},  # NaN where nothing had to move
        )
        return IBISState(renewed, history), info

    def particles(self, state: IBISState) -> Particles:
        return state.current

    def unsupported(self, model: Model) -> str | None:
        return edge.needs_rest(model, "BootstrapSMC")

    def _renew(self, key: Key, model: Model, weighted: Particles, history: History):
        resample_key, moves_key = jax.random.split(key)
        n, d = weighted.points.shape
        mean, cov = weighted_mean(weighted), weighted_cov(weighted)
        ridge = 1e-6 * jnp.trace(cov) + 1e-30
        spread = jnp.linalg.cholesky(cov + ridge * jnp.eye(d))
        kept = resample(resample_key, weighted, self.resampling)

        def log_posterior(points):
            return jax.vmap(lambda x: model.log_prior(x) + history.log_likelihood(model, x))(points)

        def fitted(points):
            z = jax.scipy.linalg.solve_triangular(spread, (points - mean).T, lower=True)
            return -0.5 * jnp.sum(z**2, axis=0)

        def move(carry, inputs):
            points, current = carry
            i, move_key = inputs
            noise_key, accept_key = jax.random.split(move_key)
            noise = jax.random.normal(noise_key, (n, d)) @ spread.T
            independent = i % 2 == 0
            proposed = jnp.where(independent, mean + noise, points + 2.38 / jnp.sqrt(d) * noise)
            value = log_posterior(proposed)
            log_ratio = value - current + jnp.where(independent, fitted(points) - fitted(proposed), 0.0)
            accept = jnp.log(jax.random.uniform(accept_key, (n,))) < log_ratio
            points = jnp.where(accept[:, None], proposed, points)
            return (points, jnp.where(accept, value, current)), jnp.mean(accept)

        inputs = (jnp.arange(self.moves), jax.random.split(moves_key, self.moves))
        (points, _), rates = jax.lax.scan(move, (kept.points, log_posterior(kept.points)), inputs)
        return Particles(points, kept.log_weights), jnp.mean(rates)
