"""pfbr: a learned Bayes' rule. Particles and one observation go in, the updated particles come out."""

from pfbr import errors, models
from pfbr.inference.arviz import to_arviz
from pfbr.inference.collocation.method import SolvingOperator, solving_operator
from pfbr.inference.corrected import Trusted
from pfbr.inference.operator import Operator, gaussian_operator
from pfbr.inference.operator_file import load, read_header, save
from pfbr.inference.pretrained import shipped
from pfbr.inference.session import Posterior, Session, init, run, step
from pfbr.models.base import Model, StateSpaceModel
from pfbr.training import TrainingSettings, fit
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
