"""The built-in models, and the two classes to derive one's own from."""

from pfbr.models.base import LinearGaussian, Model, StateSpaceModel, has_observations, observation_shape
from pfbr.models.gaussian_mean import GaussianMean
from pfbr.models.gaussian_mixture import GaussianMixture
from pfbr.models.inverse_likelihood import Withdrawn
from pfbr.models.linear_dynamics import LinearDynamics
from pfbr.models.logistic_regression import LogisticRegression
from pfbr.models.minibatch import MiniBatch

__all__ = [
    "GaussianMean",
    "GaussianMixture",
    "LinearDynamics",
    "LinearGaussian",
    "LogisticRegression",
    "MiniBatch",
    "Model",
    "StateSpaceModel",
    "Withdrawn",
    "has_observations",
    "observation_shape",
]
