"""Bayes' rule as one object: particles and an observation in, the updated particles out."""

import equinox as eqx
import jax
from jax import numpy as jnp

from pfbr.flow.likelihood import Likelihood
from pfbr.flow.settings import FlowSettings
from pfbr.flow.solve import FlowResult, flow
from pfbr.flow.transport.mapped import MapVelocity
from pfbr.flow.velocities.affine import AffineVelocity
from pfbr.flow.velocities.base import Velocity
from pfbr.inference.info import Info, Move
from pfbr.inference.method import Method
from pfbr.inference.predictive import predictive_log_density
from pfbr.inference.provenance import Provenance
from pfbr.models.base import Model, StateSpaceModel
from pfbr.models.conditions import observation_shape, stays
from pfbr.particles.particles import Particles, equally_weighted
from pfbr.particles.qmc import draw_prior, draw_transition
from pfbr.typing import Key, Observation, Points


class Proposed(eqx.Module):
    """One step of an operator: particles before the observation (after the dynamics), and after the flow."""

    prior: Particles
    moved: FlowResult

    @property
    def after(self) -> Particles:
        return equally_weighted(self.moved.points, self.moved.log_density, self.moved.scores)


class Operator(Method):
    """A velocity, how it is integrated, and how particles are drawn.

    `qmc` draws the prior and the transition noise by quasi-Monte Carlo instead of i.i.d. (see `particles.qmc`).
    `predictive` is the density of particles after a transition: "mixture" of the transition densities, or "kde".
    """

    velocity: Velocity
    settings: FlowSettings
    qmc: bool = eqx.field(static=True, default=True)
    predictive: str = eqx.field(static=True, default="mixture")
    dim: int | None = eqx.field(static=True, default=None)  # of the models it can serve; None: any
    observation_shape: tuple[int, ...] | None = eqx.field(static=True, default=None)  # idem
    provenance: Provenance = eqx.field(static=True, default=Provenance())

    def init(self, key: Key, model: Model, num_particles: int) -> Particles:
        points = draw_prior(key, model, num_particles, qmc=self.qmc)
        return self._known(points, jax.vmap(model.log_prior))

    def propose(self, key: Key, model: Model, particles: Particles, likelihood: Likelihood) -> Proposed:
        """Predict, then flow: a whole step with its own key."""
        predict_key, move_key = jax.random.split(key)
        prior = self.predict(predict_key, model, particles)
        return Proposed(prior, self.move(move_key, prior, likelihood))

    def predict(self, key: Key, model: Model, particles: Particles) -> Particles:
        """The dynamics, before an observation is seen; nothing where there are none."""
        if not isinstance(model, StateSpaceModel):
            return particles
        moved = draw_transition(key, model, particles.points, qmc=self.qmc)
        predictive = lambda at: predictive_log_density(model, particles.points, moved, at, how=self.predictive)
        predicted, still = self._known(moved, predictive), stays(model)
        if still is None:
            return predicted
        # another report at the same instant: points did not move, nor did their density
        return jax.tree.map(lambda old, new: jnp.where(still, old, new), particles, predicted)

    def _known(self, points: Points, log_density) -> Particles:
        """Equally weighted points of a density, a function of many points, with its scores where they are needed."""
        if not self.needs_scores:
            return equally_weighted(points, log_density(points))
        values, pull = jax.vjp(log_density, points)
        return equally_weighted(points, values, pull(jnp.ones_like(values))[0])

    @property
    def needs_scores(self) -> bool:
        """Whether it asks for the scores of the density before an observation."""
        return isinstance(self.velocity, MapVelocity)

    def move(self, key: Key, particles: Particles, likelihood: Likelihood) -> FlowResult:
        """The flow from the prior particles to the posterior ones."""
        context = self.velocity.prepare(key, particles.points, likelihood)
        assert particles.log_density is not None  # an operator always carries it
        return flow(
            self.settings,
            self.velocity,
            context,
            likelihood,
            particles.points,
            particles.log_density,
            scores=particles.scores,
        )

    def update(self, key: Key, model: Model, state: Particles, observation: Observation) -> tuple[Particles, Info]:
        likelihood = Likelihood(model, observation)
        step = self.propose(key, model, state, likelihood)
        values = likelihood.values(step.prior.points)
        info = Info(
            move=jnp.asarray(Move.FLOW),
            possible=jnp.mean(jnp.isfinite(values)),
            undefined=jnp.mean(jnp.isnan(values)),
            details={"num_steps": step.moved.num_steps},
        )
        return step.after, info

    def particles(self, state: Particles) -> Particles:
        return state

    def cannot_downdate(self) -> str | None:
        """Why an earlier observation cannot be taken back, the beginning of a sentence; None where it can."""
        if not self.velocity.reads_observation:
            return None
        return (
            "the velocity of this operator reads the observation itself, and so cannot tell an inverse likelihood from "
            "a likelihood; it cannot"
        )

    def unsupported(self, model: Model) -> str | None:
        if self.dim is not None and self.dim != int(model.dim):
            return (
                f"this operator was made for models with dim {self.dim}; {type(model).__name__} has dim "
                f"{model.dim}. Train one for it (pfbr.fit), or leave `method` out."
            )
        shape = observation_shape(model)
        if self.observation_shape is not None and shape is not None and self.observation_shape != shape:
            return (
                f"this operator reads observations of shape {self.observation_shape}; those of {type(model).__name__} "
                f"have shape {shape}. Train one for it (pfbr.fit)."
            )
        return None


def gaussian_operator(*, solver: str = "closed-form", steps: int = 4, tolerance: float | None = None, qmc: bool = True):
    """An operator that needs no training: exact for linear-Gaussian models, however sharp an observation, and usable at
    once on any model with a differentiable likelihood."""
    return Operator(AffineVelocity(), FlowSettings(solver=solver, steps=steps, tolerance=tolerance), qmc=qmc)
