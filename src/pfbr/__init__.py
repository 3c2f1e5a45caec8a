"""pfbr: a learned Bayes' rule. Particles and one observation go in, the updated particles come out."""

from pfbr import errors, models
from pfbr.checkpoint import load, read_header, save
from pfbr.export import to_arviz
from pfbr.models.base import Model, StateSpaceModel
from pfbr.operator import Operator, gaussian_operator
from pfbr.session import Posterior, Session, init, run, step
from pfbr.shipped import shipped
from pfbr.solving import SolvingOperator, solving_operator
from pfbr.training import TrainingSettings, fit
from pfbr.trusted import Trusted
from pfbr.version import VERSION

__version__ = VERSION
__all__ = [
    "Model",
    "Operator",
    "Posterior",
    "Session",
    "SolvingOperator",
    "StateSpaceModel",
    "TrainingSettings",
    "Trusted",
    "__version__",
    "errors",
    "fit",
    "gaussian_operator",
    "init",
    "load",
    "models",
    "read_header",
    "run",
    "save",
    "shipped",
    "solving_operator",
    "step",
    "to_arviz",
]
