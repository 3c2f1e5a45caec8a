"""The training-free velocity of the likelihood times a factor that was learned from other tasks.

Tasks of one kind have posteriors in the same region. Bayes' rule from a wide prior has to find it anew for every task;
an operator that was trained on such tasks knows it, and can go there with the first observations.
"""

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.errors import InputError
from pfbr.flow.likelihood import Likelihood
from pfbr.flow.networks import Batch
from pfbr.flow.velocities.affine import TimeSchedule, affine_part, time_schedule_of, view
from pfbr.flow.velocities.base import Velocity
from pfbr.typing import Key, Matrix, PerParticle, Point, Points, Scalar, Support

GAIN = 3.0  # weights of the factor count this much: it has to travel far, and Adam's steps are short
FIRST_WIDTH = 0.37  # standard deviation of the untrained factor, about 1/e: narrow enough that the set meets it


class Informed(Likelihood):
    """x ↦ β log p(o | x) − ½ (x − c)ᵀ Λ (x − c), seen where a velocity looks for a likelihood."""

    power: Scalar
    centre: Point
    precision: Matrix

    def values(self, points: Points) -> PerParticle:
        return self.values_and_scores(points)[0]

    def values_and_scores(self, points: Points) -> tuple[PerParticle, Points]:
        values, scores = super().values_and_scores(points)
        off = points - self.centre
        pull = off @ self.precision
        return self.power * values - 0.5 * jnp.sum(off * pull, axis=-1), self.power * scores - pull


class Opened(eqx.Module):
    """The factor that was chosen when the batch arrived, and the pace of the flow."""

    informed: Informed
    pace: TimeSchedule


class InformedVelocity(Velocity):
    """v(w) = ū + ½ C w for h(x) = β(e) log p(o | x) − ½ γ (x − c(e))ᵀ Λ (x − c(e)), in the frame of the particles.

    e = mean_l g(o_l) is the embedding of the mini-batch; Λ = R Rᵀ is what the tasks have in common. What the particles
    know already is not counted again: γ = max(0, 1 − 1/ρ), ρ the mean squared distance of the particles from their own
    mean in units of Λ. A wide set has ρ ≫ 1 and is drawn in; one that is as narrow as Λ says has γ = 0, and from there
    on the velocity is the training-free one with a learned power, on streams of any length.

    The velocity is affine in x, so that its divergence is the trace of a d × d matrix: exact, and next to free.
    """

    batch: Batch
    centre: Point
    centre_from_batch: Float[Array, "h d"]
    root: Matrix  # R: lower triangle as it is, diagonal as logarithms
    log_power: Scalar
    power_from_batch: Float[Array, " h"]

    def __init__(self, key: Key, dim: int, observation_shape: tuple[int, ...], *, width: int = 64):
        if len(observation_shape) != 2:
            raise InputError(
                "the informed operator embeds a batch (L, k) of observations, but one observation of this model has "
                f"shape {observation_shape}. Wrap the model: pfbr.models.MiniBatch(model, size)."
            )
        self.batch = Batch(key, observation_shape[1], width)
        self.centre = jnp.zeros(dim)
        self.centre_from_batch = jnp.zeros((width, dim))
        self.root = jnp.zeros((dim, dim))
        self.log_power = jnp.zeros(())
        self.power_from_batch = jnp.zeros(width)

    def factor(self, support: Support, likelihood: Likelihood) -> Informed:
        """What is to be multiplied with the particles' density."""
        embedded = self.batch(likelihood.observation)
        lower = jnp.tril(GAIN * self.root, -1)
        root = lower + jnp.diag(jnp.exp(GAIN * jnp.diagonal(self.root)) / FIRST_WIDTH)
        spread = (support - jnp.mean(support, axis=0)) @ root
        ratio = jnp.mean(jnp.sum(spread**2, axis=-1)) / support.shape[1]
        gate = jax.nn.relu(1 - 1 / jnp.maximum(ratio, 1e-6))
        return Informed(
            likelihood.model,
            likelihood.observation,
            jnp.exp(self.log_power + embedded @ self.power_from_batch),
            GAIN * (self.centre + embedded @ self.centre_from_batch),
            gate * root @ root.T,
        )

    @property
    def reads_observation(self) -> bool:
        return True

    def prepare(self, key: Key, support: Support, likelihood: Likelihood) -> Opened:
        informed = self.factor(support, likelihood)
        return Opened(informed, time_schedule_of(view(support, informed)))

    def __call__(
        self, t: Scalar, points: Points, support: Support, context: Opened, likelihood: Likelihood
    ) -> tuple[Points, PerParticle]:
        seen = view(support, context.informed)
        mean_score, half_curvature = affine_part(seen)
        rate = context.pace.rate(t)
        velocity = seen.frame.vectors(mean_score + seen.frame.whiten(points) @ half_curvature)
        return rate * velocity, jnp.broadcast_to(rate * jnp.trace(half_curvature), points.shape[:1])
