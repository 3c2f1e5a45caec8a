"""The array vocabulary: n particles, d unknowns, k values in an observation, t observations in a stream."""

from typing import Any

from jaxtyping import Array, Float, PRNGKeyArray

Key = PRNGKeyArray
Scalar = Float[Array, ""]
Real = int | float | Array  # a setting that may be traced: to be learned, or to share one compilation
Point = Float[Array, " d"]
Points = Float[Array, "n d"]
Support = Float[Array, "s d"]  # another set of points beside them
PerParticle = Float[Array, " n"]
Matrix = Float[Array, "d d"]
Observation = Float[Array, "..."]
Observations = Float[Array, "t ..."]
Numbers = Any  # what a user passes: anything that NumPy turns into an array of numbers; looked at by `checks`

__all__ = [
    "Key",
    "Matrix",
    "Numbers",
    "Observation",
    "Observations",
    "PerParticle",
    "Point",
    "Points",
    "Real",
    "Scalar",
    "Support",
]
