"""The flow of the existence proof: Langevin's drift minus the score of the current density; no training, many steps."""

import equinox as eqx
import jax

from pfbr.flow.divergence import by_forward_mode
from pfbr.flow.likelihood import Likelihood
from pfbr.flow.velocities.base import Velocity
from pfbr.models.base import Model
from pfbr.particles.density import kde_log_density, silverman
from pfbr.particles.mixtures import Distribution, KernelDensity
from pfbr.particles.particles import equally_weighted
from pfbr.typing import Key, PerParticle, Points, Real, Scalar, Support


class ModelPrior(Distribution):
    """A model's own prior."""

    model: Model

    def sample(self, key: Key):
        return self.model.sample_prior(key)

    def log_density(self, x):
        return self.model.log_prior(x)


class FokkerPlanckVelocity(Velocity):
    """f = ∇ log π(x) p(o | x) − ∇ log q(x, t), over t in [0, horizon]; its stationary law is the posterior.

    q is the kernel estimate of the particles at time t (a closed loop), so that what becomes stationary is this
    estimate: the particles themselves end a little too close together, by the kernel's width. π is the model's prior
    (`prior="model"`, right for the first observation) or the kernel estimate of the particles on arrival.

    A reference: it needs hundreds of evaluations where a learned operator needs four. Use an adaptive solver.
    """

    horizon: Real = 6.0  # the slowest direction of a posterior no wider than its prior decays as exp(−horizon)
    prior: str = eqx.field(static=True, default="model")

    def prepare(self, key: Key, support: Support, likelihood: Likelihood) -> Distribution:
        return ModelPrior(likelihood.model) if self.prior == "model" else KernelDensity.of(support)

    def __call__(
        self, t: Scalar, points: Points, support: Support, context: Distribution, likelihood: Likelihood
    ) -> tuple[Points, PerParticle]:
        cloud = equally_weighted(support)
        bandwidth = silverman(cloud)

        def potential(x):
            target = context.log_density(x) + likelihood.model.log_likelihood(x, likelihood.observation)
            return target - kde_log_density(cloud, bandwidth, x[None])[0]

        value, divergence = by_forward_mode(jax.vmap(jax.grad(potential)), points)
        return self.horizon * value, self.horizon * divergence
