"""The array vocabulary: n particles, d unknowns, k values in an observation, t observations in a stream."""

from jaxtyping import Array, Float, PRNGKeyArray

Key = PRNGKeyArray
Scalar = Float[Array, ""]
Point = Float[Array, " d"]
Points = Float[Array, "n d"]
PerParticle = Float[Array, " n"]
Matrix = Float[Array, "d d"]
Observation = Float[Array, "..."]
Observations = Float[Array, "t ..."]

__all__ = ["Key", "Matrix", "Observation", "Observations", "PerParticle", "Point", "Points", "Scalar"]
