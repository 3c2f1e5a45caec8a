"""Particle flow by formula: the likelihood is switched on little by little, and Gaussian particles follow exactly.

Follows Daum, Huang and Noushin, "Exact particle flow for nonlinear filters" (2010), and for the localised form Ding
and Coates, "Implementation of the Daum-Huang exact-flow particle filter" (2012). Between two linearisations the
linear flow is solved in closed form instead of by small Euler steps.
"""

import equinox as eqx
import jax
from jax import numpy as jnp

from pfbr.baselines import edge
from pfbr.errors import InputError
from pfbr.inference.info import Info
from pfbr.inference.method import Method
from pfbr.models.base import Model
from pfbr.particles.particles import Particles, equally_weighted
from pfbr.typing import Key, Observation


def _steps(value: int) -> int:
    if value < 1:
        raise InputError(f"`steps` must be at least 1; got {value}.")
    return value


class DaumHuang(Method):
    """dx/dλ = A(λ) x + b(λ), λ from 0 to 1, A = −½ P Hᵀ (λ H P Hᵀ + R)⁻¹ H.

    In the whitened frame of the prediction, with information G and target y of the linearised likelihood, the flow
    takes N(m(λ), (I + λG)⁻¹), m(λ) = λ (I + λG)⁻¹ y, along with itself. The exact form linearises at the particles'
    mean; `localised=True` does so at each particle, which costs one eigendecomposition each. `steps` grow by a factor
    of 1.2, since most happens at the start.
    """

    localised: bool = eqx.field(static=True, default=False)
    steps: int = eqx.field(static=True, default=20, converter=_steps)

    def init(self, key: Key, model: Model, num_particles: int) -> Particles:
        edge.accept(self, model, num_particles)
        return equally_weighted(edge.prior_points(key, model, num_particles))

    def update(self, key: Key, model: Model, state: Particles, observation: Observation) -> tuple[Particles, Info]:
        observation = edge.accept_observation(model, observation)
        points = edge.predict(key, model, state.points)
        n, d = points.shape
        mean = jnp.mean(points, 0)
        cov = (points - mean).T @ (points - mean) / (n - 1)
        ridge = 1e-6 * jnp.mean(jnp.diagonal(cov)) + 1e-30  # lets float32 factor a nearly singular covariance
        frame = jnp.linalg.cholesky(cov + ridge * jnp.eye(d))
        whitened = jax.scipy.linalg.solve_triangular(frame, (points - mean).T, lower=True).T

        def log_likelihood(w):
            return model.log_likelihood(mean + frame @ w, observation)

        def linearise(w):
            """Strengths and axes of the information at w, and the target in these axes."""
            curvature = -jax.hessian(log_likelihood)(w)
            strengths, axes = jnp.linalg.eigh((curvature + curvature.T) / 2)
            strengths = jnp.maximum(strengths, 0.0)  # a likelihood that curves upwards tells nothing in this form
            return strengths, axes, axes.T @ jax.grad(log_likelihood)(w) + strengths * (axes.T @ w)

        def advance(w, line, start, stop):
            """The linear flow from λ = start to λ = stop, in closed form."""
            strengths, axes, target = line
            before, after = 1.0 + start * strengths, 1.0 + stop * strengths
            w = axes.T @ w
            w = stop * target / after + jnp.sqrt(before / after) * (w - start * target / before)
            return axes @ w

        def step(w, interval):
            if self.localised:
                line = jax.vmap(linearise)(w)
                return jax.vmap(advance, (0, 0, None, None))(w, line, *interval), None
            line = linearise(jnp.mean(w, 0))
            return jax.vmap(advance, (0, None, None, None))(w, line, *interval), None

        times = jnp.concatenate([jnp.zeros(1), jnp.cumsum(1.2 ** jnp.arange(self.steps))])
        times = times / times[-1]
        moved, _ = jax.lax.scan(step, whitened, (times[:-1], times[1:]))
        return equally_weighted(mean + moved @ frame.T), Info()

    def particles(self, state: Particles) -> Particles:
        return state
