"""The true posterior after every observation: by formula where the model is linear and Gaussian, on a grid in 2-d."""

from abc import abstractmethod

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.errors import InputError
from pfbr.models.base import Model, StateSpaceModel
from pfbr.typing import Key, Observations, PerParticle, Point, Points


class Truth(eqx.Module):
    """The posterior after one stage, or after each of T stages when its arrays carry a leading axis (use vmap)."""

    @abstractmethod
    def sample(self, key: Key, num: int) -> Points:
        """i.i.d. draws."""

    @abstractmethod
    def log_density(self, points: Points) -> PerParticle:
        """Normalised log density."""


class GaussianTruth(Truth):
    """N(mean, cov), with the log evidence log p(o_1 … o_m) of all observations so far."""

    mean: Float[Array, "... d"]
    cov: Float[Array, "... d d"]
    log_evidence: Float[Array, "..."]

    def sample(self, key: Key, num: int) -> Points:
        noise = jax.random.normal(key, (num, self.mean.shape[-1]))
        return self.mean + noise @ jnp.linalg.cholesky(self.cov).T

    def log_density(self, points: Points) -> PerParticle:
        return jnp.asarray(jax.scipy.stats.multivariate_normal.logpdf(points, self.mean, self.cov))


class GridTruth(Truth):
    """Log masses of the cells of a rectangular grid in the plane, fitted to where the posterior lives.

    Inside a cell the density is constant: with 256 cells a side over eight standard deviations the cell is 1/32
    of a standard deviation, and the log density at its edge is off by less than 0.1 in the tails.
    """

    lower: Float[Array, "... 2"]
    upper: Float[Array, "... 2"]
    log_mass: Float[Array, "... g g"]
    log_evidence: Float[Array, "..."]

    def sample(self, key: Key, num: int) -> Points:
        cell_key, inside_key = jax.random.split(key)
        g = self.log_mass.shape[-1]
        below = jnp.cumsum(jnp.exp(self.log_mass.reshape(-1)))
        cell = jnp.searchsorted(below, below[-1] * jax.random.uniform(cell_key, (num,)))
        corner = jnp.stack([cell // g, cell % g], axis=-1)
        return self.lower + (corner + jax.random.uniform(inside_key, (num, 2))) * (self.upper - self.lower) / g

    def log_density(self, points: Points) -> PerParticle:
        g = self.log_mass.shape[-1]
        size = (self.upper - self.lower) / g
        cell = jnp.floor((points - self.lower) / size).astype(int)
        inside = jnp.all((cell >= 0) & (cell < g), axis=-1)
        cell = jnp.clip(cell, 0, g - 1)
        return jnp.where(inside, self.log_mass[cell[:, 0], cell[:, 1]] - jnp.sum(jnp.log(size)), -jnp.inf)

    @property
    def mean(self) -> Point:
        g = self.log_mass.shape[-1]
        mass = jnp.exp(self.log_mass)
        centres = (jnp.arange(g) + 0.5) / g
        inside = jnp.stack([jnp.sum(mass.sum(-1) * centres, -1), jnp.sum(mass.sum(-2) * centres, -1)], -1)
        return self.lower + inside * (self.upper - self.lower)


def kalman(model: Model, observations: Observations) -> GaussianTruth:
    """Exact posteriors of a linear-Gaussian model after each observation (stage 1 first)."""
    system = model.linear_gaussian()
    if system is None:
        raise InputError(f"{type(model).__name__} does not say that it is linear and Gaussian (`linear_gaussian`).")
    A, Q, B, R, mean, cov = system

    def advance(carry, observation):
        mean, cov, log_evidence = carry
        mean, cov = A @ mean, A @ cov @ A.T + Q
        innovation_cov = B @ cov @ B.T + R
        gain = jnp.linalg.solve(innovation_cov, B @ cov).T
        predicted = B @ mean
        log_evidence += jax.scipy.stats.multivariate_normal.logpdf(observation.reshape(-1), predicted, innovation_cov)
        mean = mean + gain @ (observation.reshape(-1) - predicted)
        shrink = jnp.eye(mean.shape[0]) - gain @ B
        cov = shrink @ cov @ shrink.T + gain @ R @ gain.T  # Joseph's form stays symmetric and positive
        return (mean, cov, log_evidence), (mean, cov, log_evidence)

    start = (mean, cov, jnp.zeros((), mean.dtype))
    return GaussianTruth(*jax.lax.scan(advance, start, jnp.asarray(observations))[1])


def grid(model: Model, observations: Observations, *, cells: int = 256, refinements: int = 3) -> GridTruth:
    """Posteriors in the plane after each observation, for any model without dynamics.

    The first grid covers the prior generously; it then closes in on where the posterior is.
    """
    if int(model.dim) != 2 or isinstance(model, StateSpaceModel):
        raise InputError(f"a grid needs a model with dim 2 and no dynamics; {type(model).__name__} is not one.")
    observations = jnp.asarray(observations)
    coarse = max(16, cells // 3)  # enough to find the box
    lower, upper = prior_box(model)
    indices = jnp.arange(observations.shape[0])

    def at_stage(stage):
        def log_joint(points):
            def include(total, indexed):
                index, observation = indexed
                value = jax.vmap(model.log_likelihood, (0, None))(points, observation)
                return total + jnp.where(index <= stage, value, 0.0), None

            return jax.lax.scan(include, jax.vmap(model.log_prior)(points), (indices, observations))[0]

        box = box_of_mass(log_joint, lower, upper, cells=coarse, refinements=refinements)
        return grid_from_log_density(log_joint, *box, cells=cells)

    return jax.lax.map(at_stage, indices)


def prior_box(model: Model) -> tuple[Point, Point]:
    """A rectangle that holds the prior with room to spare: twice the reach of 1024 of its draws."""
    draws = jax.vmap(model.sample_prior)(jax.random.split(jax.random.key(0), 1024))
    middle = jnp.mean(draws, axis=0)
    reach = jnp.max(jnp.abs(draws - middle), axis=0)
    return middle - 2.0 * reach, middle + 2.0 * reach


def _cells(lower: Point, upper: Point, cells: int) -> Points:
    """Centres of the cells of a grid."""
    ticks = (jnp.arange(cells) + 0.5) / cells
    unit = jnp.stack(jnp.meshgrid(ticks, ticks, indexing="ij"), -1).reshape(-1, 2)
    return lower + unit * (upper - lower)


def box_of_mass(log_density, lower: Point, upper: Point, *, cells: int, refinements: int) -> tuple[Point, Point]:
    """The rectangle where a log density is within 14 nats of its top, plus a margin, closing in step by step."""
    for _ in range(refinements):
        points = _cells(lower, upper, cells)
        values = log_density(points)
        alive = (values > jnp.max(values) - 14.0)[:, None]
        margin = 2.0 * (upper - lower) / cells
        lower, upper = (
            jnp.min(jnp.where(alive, points, jnp.inf), 0) - margin,
            jnp.max(jnp.where(alive, points, -jnp.inf), 0) + margin,
        )
    return lower, upper


def grid_from_log_density(log_density, lower: Point, upper: Point, *, cells: int) -> GridTruth:
    """A density in the plane, known up to a constant, on a grid."""
    values = log_density(_cells(lower, upper, cells))
    total = jax.nn.logsumexp(values)
    log_evidence = total + jnp.sum(jnp.log((upper - lower) / cells))
    return GridTruth(lower, upper, (values - total).reshape(cells, cells), log_evidence)


def exact(model: Model, observations: Observations) -> Truth | None:
    """The exact posteriors of a stream, or None where no formula or grid applies."""
    if model.linear_gaussian() is not None:
        return kalman(model, observations)
    if int(model.dim) == 2 and not isinstance(model, StateSpaceModel):
        return grid(model, observations)
    return None
