"""Models: what a user writes, and the built-in ones."""

from pfbr.models.base import LinearGaussian, Model, StateSpaceModel, has_observations
from pfbr.models.conditions import observation_shape
from pfbr.models.gaussian_mean import GaussianMean
from pfbr.models.gaussian_mixture import GaussianMixture
from pfbr.models.linear_dynamics import LinearDynamics
from pfbr.models.logistic_regression import LogisticRegression
from pfbr.models.minibatch import MiniBatch
from pfbr.models.numpyro.convert import from_numpyro

__all__ = [
    "GaussianMean",
    "GaussianMixture",
    "LinearDynamics",
    "LinearGaussian",
    "LogisticRegression",
    "MiniBatch",
    "Model",
    "StateSpaceModel",
    "from_numpyro",
    "has_observations",
    "observation_shape",
]
