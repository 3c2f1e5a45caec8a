"""Streaming variational inference: a Gaussian is the next prior, and gradient steps fit the next Gaussian to it.

Follows Broderick et al., "Streaming variational Bayes" (2013), with the reparameterised gradients of Kucukelbir et al.,
"Automatic differentiation variational inference" (2017); mean-field or full rank. No datum is stored.
"""

import equinox as eqx
import jax
import optax
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.baselines import edge
from pfbr.baselines.stochastic import positive
from pfbr.inference.info import Info
from pfbr.inference.method import Method
from pfbr.models.base import Model, offers
from pfbr.particles.particles import Particles, equally_weighted
from pfbr.typing import Key, Observation, Point, Real


class GaussianState(eqx.Module):
    """N(mean, root rootᵀ), and draws of it."""

    mean: Point
    root: Float[Array, "d d"]
    draws: Particles


class StreamingSVI(Method):
    """max over N(m, S Sᵀ) of E[log p(o | x)] − KL(N(m, S Sᵀ) ‖ last posterior), by `steps` of Adam.

    The fit happens in the frame where the last posterior is N(0, I), so that `rate` means the same at every stage;
    it falls to zero along a cosine within each update. Expectations are over `samples` antithetic draws.
    """

    full_rank: bool = eqx.field(static=True, default=True)
    rate: Real = eqx.field(default=0.03, converter=positive("rate"))
    steps: int = eqx.field(static=True, default=100, converter=positive("steps"))
    samples: int = eqx.field(static=True, default=32, converter=positive("samples"))

    def init(self, key: Key, model: Model, num_particles: int) -> GaussianState:
        edge.accept(self, model, num_particles)
        # the Gaussian nearest to the prior: matched moments of fixed draws (exact up to their number)
        points = edge.prior_points(jax.random.key(0), model, 4096)
        mean, cov = jnp.mean(points, 0), jnp.cov(points.T).reshape(int(model.dim), int(model.dim))
        system = model.linear_gaussian() if offers(model, "linear_gaussian") else None
        if system is not None:
            mean, cov = system.mean, system.cov
        root = jnp.linalg.cholesky(cov) if self.full_rank else jnp.diag(jnp.sqrt(jnp.diagonal(cov)))
        return GaussianState(mean, root, _draw(key, mean, root, num_particles))

    def update(self, key: Key, model: Model, state: GaussianState, observation: Observation):
        observation = edge.accept_observation(model, observation)
        fit_key, draw_key = jax.random.split(key)
        d = state.mean.shape[0]

        def factor(parameters):
            lower = jnp.tril(parameters["lower"], -1) if self.full_rank else 0.0
            return lower + jnp.diag(jnp.exp(parameters["log_diagonal"]))

        def negative_elbo(parameters, noise):
            shift, S = parameters["shift"], factor(parameters)
            points = state.mean + (shift + noise @ S.T) @ state.root.T
            fit = jnp.mean(jax.vmap(model.log_likelihood, (0, None))(points, observation))
            kl = 0.5 * (jnp.sum(S**2) + shift @ shift - d) - jnp.sum(parameters["log_diagonal"])
            return kl - fit

        schedule = optax.cosine_decay_schedule(1.0, self.steps)
        optimiser = optax.chain(optax.scale_by_adam(b2=0.99), optax.scale_by_schedule(schedule))
        start = {"shift": jnp.zeros(d), "log_diagonal": jnp.zeros(d), "lower": jnp.zeros((d, d))}

        def step(carry, step_key):
            parameters, memory = carry
            half = jax.random.normal(step_key, ((self.samples + 1) // 2, d))
            value, gradient = jax.value_and_grad(negative_elbo)(parameters, jnp.concatenate([half, -half]))
            direction, memory = optimiser.update(gradient, memory)
            return (jax.tree.map(lambda p, u: p - self.rate * u, parameters, direction), memory), value

        keys = jax.random.split(fit_key, self.steps)
        (parameters, _), losses = jax.lax.scan(step, (start, optimiser.init(start)), keys)
        mean, root = state.mean + state.root @ parameters["shift"], state.root @ factor(parameters)
        draws = _draw(draw_key, mean, root, state.draws.num_particles)
        return GaussianState(mean, root, draws), Info(details={"elbo": -jnp.mean(losses[-max(self.steps // 10, 1) :])})

    def particles(self, state: GaussianState) -> Particles:
        return state.draws

    def unsupported(self, model: Model) -> str | None:
        return edge.needs_rest(model, "EnKF")


def _draw(key: Key, mean: Point, root: Float[Array, "d d"], num: int) -> Particles:
    noise = jax.random.normal(key, (num, mean.shape[0]))
    constant = jnp.sum(jnp.log(jnp.diagonal(root))) + 0.5 * mean.shape[0] * jnp.log(2 * jnp.pi)
    return equally_weighted(mean + noise @ root.T, -0.5 * jnp.sum(noise**2, axis=1) - constant)
