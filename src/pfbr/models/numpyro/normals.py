"""Draws of a NumPyro distribution as functions of standard normals, where they are: quasi-Monte Carlo needs that."""

import math

from jax import numpy as jnp
from jaxtyping import Array
from numpyro import distributions as dist
from numpyro.distributions.distribution import TransformedDistribution

from pfbr.models.numpyro.sites import Site

Batch = tuple[int, ...] | None


def normal_shape(law: dist.Distribution, batch: Batch = None) -> tuple[int, ...] | None:
    """The shape of the standard normals that make a draw; None for distributions that are not made of them.

    `batch` is what the distribution has been expanded to.
    """
    batch = law.batch_shape if batch is None else batch
    inner = _inside(law, batch)
    if inner is not None:
        return normal_shape(*inner)
    return (*batch, *law.event_shape) if type(law) in (dist.Normal, dist.MultivariateNormal) else None


def from_normal(law: dist.Distribution, z: Array, batch: Batch = None) -> Array:
    """A draw from standard normals of `normal_shape(law)`."""
    batch = law.batch_shape if batch is None else batch
    inner = _inside(law, batch)
    if inner is None and isinstance(law, dist.MultivariateNormal):
        return law.loc + jnp.einsum("...ij,...j->...i", law.scale_tril, z)
    if inner is None:
        return law.loc + law.scale * z
    value = from_normal(inner[0], z, inner[1])
    for transform in law.transforms if isinstance(law, TransformedDistribution) else ():
        value = transform(value)
    return value


def _inside(law: dist.Distribution, batch: tuple[int, ...]) -> tuple[dist.Distribution, tuple[int, ...]] | None:
    """The distribution inside of another, and what that one is expanded to."""
    if isinstance(law, dist.Independent):
        return law.base_dist, (*batch, *law.base_dist.batch_shape[len(law.batch_shape) :])
    if isinstance(law, dist.ExpandedDistribution | TransformedDistribution):
        return law.base_dist, batch
    return None


def normals_of(site: Site) -> int | None:
    """How many standard normals make a latent site; None where they do not."""
    shape = None if site["kwargs"].get("sample_shape") else normal_shape(site["fn"])
    return None if shape is None else math.prod(shape)


def made_of(z: Array, sizes: dict[str, int]):
    """A value for each site from its part of the normals, in the order of `sizes`."""
    starts = dict(zip(sizes, [sum(list(sizes.values())[:i]) for i in range(len(sizes))], strict=True))

    def value_of(site: Site) -> Array:
        start = starts[site["name"]]
        part = z[start : start + sizes[site["name"]]]
        return from_normal(site["fn"], part.reshape(normal_shape(site["fn"])))

    return value_of
