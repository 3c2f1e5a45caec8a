"""The array vocabulary: n particles, d unknowns, k values in an observation, t observations in a stream."""

from typing import Any

from jaxtyping import Array, Float, PRNGKeyArray

Key = PRNGKeyArray
Scalar = Float[Array, ""]
Point = Float[Array, " d"]
Points = Float[Array, "n d"]
PerParticle = Float[Array, " n"]
Matrix = Float[Array, "d d"]
Observation = Float[Array, "..."]
Observations = Float[Array, "t ..."]
Numbers = Any  # what a user passes: anything that NumPy turns into an array of numbers; looked at by `checks`

__all__ = ["Key", "Matrix", "Numbers", "Observation", "Observations", "PerParticle", "Point", "Points", "Scalar"]
