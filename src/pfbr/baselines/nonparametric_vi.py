"""Nonparametric variational inference: a mixture of equal Gaussians fitted by gradient steps on random batches.

Follows Gershman, Hoffman and Blei, "Nonparametric variational inference" (2012), with the data term from batches.
"""

import equinox as eqx
import jax
import optax
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.baselines import edge
from pfbr.baselines.stochastic import positive
from pfbr.inference.history import History, check_capacity, empty_history
from pfbr.inference.info import Info
from pfbr.inference.method import Method
from pfbr.models.base import Model
from pfbr.particles.density import squared_distances
from pfbr.particles.particles import Particles, equally_weighted
from pfbr.typing import Key, Observation, PerParticle, Points, Real, Support


class MixtureState(eqx.Module):
    """Centres and log widths of the components, all data so far, and draws of the mixture."""

    centres: Points
    log_widths: Float[Array, " k"]
    history: History
    draws: Particles


class NonparametricVI(Method):
    """max of mean_k [f(μ_k) + ½ σ_k² tr ∇²f(μ_k)] − mean_k log mean_j N(μ_k; μ_j, (σ_k² + σ_j²) I), f = log p(x, O).

    `components` K; `steps` of Adam for each observation, with `rate` in units of the mixture's spread; the data term is
    from `batch` stored observations, drawn anew in each step.
    """

    components: int = eqx.field(static=True, default=16, converter=positive("components"))
    rate: Real = eqx.field(default=0.05, converter=positive("rate"))
    steps: int = eqx.field(static=True, default=50, converter=positive("steps"))
    batch: int = eqx.field(static=True, default=16, converter=positive("batch"))
    capacity: int = eqx.field(static=True, default=256, converter=check_capacity)

    def init(self, key: Key, model: Model, num_particles: int) -> MixtureState:
        edge.accept(self, model, num_particles)
        centre_key, draw_key = jax.random.split(key)
        d = int(model.dim)
        prior = edge.prior_points(jax.random.key(0), model, 1024)
        # a mixture of K kernels at draws has the prior's spread when centres are shrunk by as much as kernels add
        h = min((4.0 / (d + 2)) ** (1.0 / (d + 4)) * self.components ** (-1.0 / (d + 4)), 0.95)
        std = jnp.std(prior, axis=0)
        middle = jnp.mean(prior, axis=0)
        drawn = edge.prior_points(centre_key, model, self.components)
        centres = middle + jnp.sqrt(1.0 - h**2) * (drawn - middle)
        log_widths = jnp.full(self.components, jnp.log(h * jnp.mean(std)))
        draws = _draw(draw_key, centres, log_widths, num_particles)
        return MixtureState(centres, log_widths, empty_history(model, self.capacity), draws)

    def update(self, key: Key, model: Model, state: MixtureState, observation: Observation):
        history = state.history.append(model, edge.accept_observation(model, observation))
        fit_key, draw_key = jax.random.split(key)
        spread = jnp.sqrt(jnp.var(state.centres, axis=0) + jnp.mean(jnp.exp(2 * state.log_widths)))

        def objective(parameters, rows, factor):
            centres, variances = spread * parameters["centres"], jnp.exp(2 * parameters["log_widths"])

            def log_joint(x):
                fit = jnp.sum(jax.vmap(lambda i: rows.log_likelihood(model, x, i))(jnp.arange(self.batch)))
                return model.log_prior(x) + factor * fit

            values = jax.vmap(log_joint)(centres)
            curvatures = jax.vmap(lambda x: jnp.trace(jax.hessian(log_joint)(x)))(centres)
            crowding = _log_mixture(centres, variances, centres, variances)
            return -jnp.mean(values + 0.5 * variances * curvatures - crowding)

        optimiser = optax.chain(
            optax.scale_by_adam(b2=0.99), optax.scale_by_schedule(optax.cosine_decay_schedule(1.0, self.steps))
        )
        start = {"centres": state.centres / spread, "log_widths": state.log_widths}

        def step(carry, step_key):
            parameters, memory = carry
            value, gradient = jax.value_and_grad(objective)(parameters, *history.batch(step_key, self.batch))
            direction, memory = optimiser.update(gradient, memory)
            return (jax.tree.map(lambda p, u: p - self.rate * u, parameters, direction), memory), value

        keys = jax.random.split(fit_key, self.steps)
        (parameters, _), losses = jax.lax.scan(step, (start, optimiser.init(start)), keys)
        centres, log_widths = spread * parameters["centres"], parameters["log_widths"]
        draws = _draw(draw_key, centres, log_widths, state.draws.num_particles)
        return MixtureState(centres, log_widths, history, draws), Info(details={"elbo": -losses[-1]})

    def particles(self, state: MixtureState) -> Particles:
        return state.draws

    def unsupported(self, model: Model) -> str | None:
        return edge.needs_rest(model, "EnKF")


def _log_mixture(at: Points, at_variances: PerParticle, centres: Support, variances: Float[Array, " s"]) -> PerParticle:
    """log mean_j N(at_i; centre_j, (at_variance_i + variance_j) I)"""
    total = at_variances[:, None] + variances[None, :]
    d = at.shape[1]
    terms = -0.5 * squared_distances(at, centres) / total - 0.5 * d * jnp.log(2 * jnp.pi * total)
    return jax.nn.logsumexp(terms, axis=1) - jnp.log(float(centres.shape[0]))


def _draw(key: Key, centres: Points, log_widths: Array, num: int) -> Particles:
    which_key, noise_key = jax.random.split(key)
    k, d = centres.shape
    # every component the same number of times, as nearly as can be: the weights are equal
    which = jax.random.permutation(which_key, jnp.arange(num) % k)
    points = centres[which] + jnp.exp(log_widths[which])[:, None] * jax.random.normal(noise_key, (num, d))
    return equally_weighted(points, _log_mixture(points, jnp.zeros(num), centres, jnp.exp(2 * log_widths)))
