"""What every velocity offers: where particles go, and how fast the volume around each one grows."""

from abc import abstractmethod
from typing import Any

import equinox as eqx

from pfbr.flow.likelihood import Likelihood
from pfbr.particles.whitening import Frame
from pfbr.typing import Key, Matrix, PerParticle, Point, Points, Scalar


class Velocity(eqx.Module):
    """dx/dt = f, with ∇·f beside it, over t in [0, 1].

    `open` looks at the particles and the likelihood once, when the observation arrives; what it returns is held
    fixed during the move. The velocity itself may look at the whole set again at every t (a closed loop). The
    divergence is that of the velocity field at a particle with the set's statistics held fixed: the field that the
    particles sample, not the n·d-dimensional map of all of them together.
    """

    @abstractmethod
    def open(self, key: Key, support: Points, likelihood: Likelihood) -> Any:
        """What is decided once per observation."""

    @abstractmethod
    def __call__(
        self, t: Scalar, points: Points, support: Points, context: Any, likelihood: Likelihood
    ) -> tuple[Points, PerParticle]:
        """Velocity and divergence at `points`; the set's statistics are those of `support` (mostly the same points)."""


class AffineVelocity(Velocity):
    """A velocity that is affine in x: the flow of a Gaussian set under a quadratic likelihood, which has a closed form
    (see `affine_steps`)."""

    @abstractmethod
    def tangent(self, support: Points, likelihood: Likelihood) -> tuple[Frame, Point, Matrix]:
        """The frame of the set and, in it, slope ū and curvature M of the quadratic ū·w − ½ wᵀMw that the set sees."""

    @abstractmethod
    def clock(self, context: Any, tau: Scalar) -> Scalar:
        """The power t of the likelihood at which the flow is at time τ, from t(0) = 0 to t(1) = 1."""
