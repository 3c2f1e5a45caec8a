"""pfbr: a learned Bayes' rule. Particles and one observation go in, the updated particles come out."""

from pfbr import errors, models
from pfbr.models.base import Model, StateSpaceModel
from pfbr.operator import Operator, gaussian_operator
from pfbr.session import Posterior, Session, init, run, step

__version__ = "0.1.0"
__all__ = [
    "Model",
    "Operator",
    "Posterior",
    "Session",
    "StateSpaceModel",
    "errors",
    "gaussian_operator",
    "init",
    "models",
    "run",
    "step",
]
