"""What every velocity offers: where particles go, and how fast the volume around each one grows."""

from abc import abstractmethod
from typing import Any

import equinox as eqx

from pfbr.flow.likelihood import Likelihood
from pfbr.typing import Key, PerParticle, Points, Scalar, Support


class Velocity(eqx.Module):
    """dx/dt = f, with ∇·f beside it, over t in [0, 1].

    `prepare` looks at the particles and the likelihood once, when the observation arrives; what it returns is held
    fixed during the move. The velocity itself may look at the whole set again at every t (a closed loop). The
    divergence is that of the velocity field at a particle with the set's statistics held fixed: the field that the
    particles sample, not the n·d-dimensional map of all of them together.
    """

    @property
    def reads_observation(self) -> bool:
        """Whether it looks at the observation itself, and not only at its likelihood as a function on the particles."""
        return False

    @abstractmethod
    def prepare(self, key: Key, support: Support, likelihood: Likelihood) -> Any:
        """What is decided once per observation."""

    @abstractmethod
    def __call__(
        self, t: Scalar, points: Points, support: Support, context: Any, likelihood: Likelihood
    ) -> tuple[Points, PerParticle]:
        """Velocity and divergence at `points`; the set's statistics are those of `support` (mostly the same points)."""
