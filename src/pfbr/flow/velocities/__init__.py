"""Velocities: the paper's, the training-free one, those learned on top of it, and that of the existence proof."""

from pfbr.flow.velocities.affine import AffineVelocity
from pfbr.flow.velocities.base import Velocity
from pfbr.flow.velocities.fokker_planck import FokkerPlanckVelocity
from pfbr.flow.velocities.gated import GatedVelocity
from pfbr.flow.velocities.informed import InformedVelocity
from pfbr.flow.velocities.residual import ResidualVelocity

__all__ = [
    "AffineVelocity",
    "FokkerPlanckVelocity",
    "GatedVelocity",
    "InformedVelocity",
    "ResidualVelocity",
    "Velocity",
]
