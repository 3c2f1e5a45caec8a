"""Bayes' rule as one object: particles and an observation in, the updated particles out."""

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.flow.likelihood import Likelihood
from pfbr.flow.solve import FlowSettings, Moved, flow
from pfbr.flow.velocities.affine import GaussianVelocity
from pfbr.flow.velocities.base import Velocity
from pfbr.inference.method import OnlineMethod
from pfbr.models.base import Model, StateSpaceModel, observation_shape, offers
from pfbr.particles.density import kde_log_density, silverman
from pfbr.particles.particles import Particles, equally_weighted
from pfbr.particles.qmc import draw_prior, draw_transition
from pfbr.typing import Key, Observation, PerParticle, Points

MIXTURE_COMPONENTS = 2048  # of the predictive density: beyond this an evenly chosen subset estimates it as well


class State(eqx.Module):
    """The current posterior, and how many observations made it."""

    particles: Particles
    stage: Float[Array, ""]


class Operator(OnlineMethod):
    """A velocity, how it is integrated, and how particles are drawn.

    `even` draws the prior and the transition noise evenly instead of i.i.d. (see `draws`). `predictive` is the
    density of particles after a transition: "mixture" of the transition densities, or "kde".
    """

    velocity: Velocity
    settings: FlowSettings
    even: bool = eqx.field(static=True, default=True)
    predictive: str = eqx.field(static=True, default="mixture")
    dim: int | None = eqx.field(static=True, default=None)  # of the models it can serve; None: any
    observation_shape: tuple[int, ...] | None = eqx.field(static=True, default=None)  # idem
    provenance: str = eqx.field(static=True, default="{}")  # JSON: how this operator was made; travels with its file

    def init(self, key: Key, model: Model, num_particles: int) -> State:
        points = draw_prior(key, model, num_particles, even=self.even)
        return State(equally_weighted(points, jax.vmap(model.log_prior)(points)), jnp.zeros((), jnp.int32))

    def predict(self, key: Key, model: Model, particles: Particles) -> Particles:
        """The dynamics, before an observation is seen; nothing where there are none."""
        if not isinstance(model, StateSpaceModel):
            return particles
        moved = draw_transition(key, model, particles.points, even=self.even)
        density = predictive_log_density(model, particles.points, moved, moved, how=self.predictive)
        return equally_weighted(moved, density)

    def move(self, key: Key, particles: Particles, likelihood: Likelihood) -> Moved:
        """The flow from the prior particles to the posterior ones."""
        context = self.velocity.open(key, particles.points, likelihood)
        assert particles.log_density is not None  # an operator always carries it
        return flow(self.settings, self.velocity, context, likelihood, particles.points, particles.log_density)

    def move_back(self, prior: Points, key: Key, particles: Particles, likelihood: Likelihood) -> Moved:
        """The flow from posterior particles back to prior ones, by the same steps in reverse.

        `prior` are the points with which the flow was opened. Exact up to the solver's error (see docs/trust.md).
        """
        context = self.velocity.open(key, prior, likelihood)
        assert particles.log_density is not None  # an operator always carries it
        return flow(
            self.settings, self.velocity, context, likelihood, particles.points, particles.log_density, reverse=True
        )

    def update(self, key: Key, model: Model, state: State, observation: Observation) -> tuple[State, dict]:
        predict_key, move_key = jax.random.split(key)
        prior = self.predict(predict_key, model, state.particles)
        likelihood = Likelihood(model, observation)
        moved = self.move(move_key, prior, likelihood)
        values = likelihood.values(prior.points)
        info = {
            "num_steps": moved.num_steps,
            "alive": jnp.mean(jnp.isfinite(values)),
            "nan": jnp.mean(jnp.isnan(values)),
        }
        return State(equally_weighted(moved.points, moved.log_density), state.stage + 1), info

    def particles(self, state: State) -> Particles:
        return state.particles

    def unsupported(self, model: Model) -> str | None:
        if self.dim is not None and self.dim != int(model.dim):
            return (
                f"this operator was made for models with dim {self.dim}; {type(model).__name__} has dim {model.dim}. "
                "Train one for it (pfbr.fit), or use pfbr.gaussian_operator(), which serves any dimension."
            )
        shape = observation_shape(model)
        if self.observation_shape is not None and shape is not None and self.observation_shape != shape:
            return (
                f"this operator reads observations of shape {self.observation_shape}; those of {type(model).__name__} "
                f"have shape {shape}. Train one for it (pfbr.fit)."
            )
        return None


def predictive_log_density(
    model: StateSpaceModel, before: Points, predicted: Points, at: Points, *, how: str = "mixture"
) -> PerParticle:
    """log p(x_m | o_1 … o_{m−1}) at the rows of `at`, from the particles `before` the transition and `predicted` by it.

    The mixture 1/N Σ_n p(x | x_{m−1}^n) is the law the moved particles were drawn from; in ten dimensions it is far
    better than a kernel estimate, which is here for models whose transition density is unknown.
    """
    if how == "kde":
        cloud = equally_weighted(predicted)
        return kde_log_density(cloud, silverman(cloud), at)
    components = before[:: max(1, before.shape[0] // MIXTURE_COMPONENTS)]
    if offers(model, "transition_mean_and_std"):
        means, stds = jax.vmap(model.transition_mean_and_std)(components)  # type: ignore[arg-type]
        return kde_log_density(equally_weighted(means), stds[0], at)
    pairwise = jax.vmap(jax.vmap(model.log_transition, (None, 0)), (0, None))
    total = jax.nn.logsumexp(pairwise(at, components), axis=1)
    return total - jnp.log(float(components.shape[0]))


def gaussian_operator(
    *, solver: str = "closed-form", steps: int = 4, tolerance: float | None = None, even: bool = True
):
    """An operator that needs no training: exact for linear-Gaussian models, however sharp an observation, and usable at
    once on any model with a differentiable likelihood."""
    return Operator(GaussianVelocity(), FlowSettings(solver=solver, steps=steps, tolerance=tolerance), even=even)
