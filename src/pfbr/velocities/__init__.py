"""Velocities: the paper's, the training-free one, those learned on top of it, and that of the existence proof."""

from pfbr.velocities.base import Velocity
from pfbr.velocities.fokker_planck import FokkerPlanckVelocity
from pfbr.velocities.gated import GatedVelocity
from pfbr.velocities.gaussian import GaussianVelocity
from pfbr.velocities.informed import InformedVelocity
from pfbr.velocities.residual import ResidualVelocity

__all__ = [
    "FokkerPlanckVelocity",
    "GatedVelocity",
    "GaussianVelocity",
    "InformedVelocity",
    "ResidualVelocity",
    "Velocity",
]
