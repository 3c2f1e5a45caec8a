"""The true posterior after every observation: by formula where the model is linear and Gaussian, on a grid in 2-d."""

from abc import abstractmethod

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.errors import InputError
from pfbr.inference.method import Stream
from pfbr.models.base import Model, StateSpaceModel, offers
from pfbr.models.conditions import Conditions, bind, conditions_of, example_of, stays
from pfbr.models.needs import all_needs
from pfbr.typing import Key, Observation, Observations, PerParticle, Point, Points


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
    def mean(self) -> Float[Array, "... 2"]:
        g = self.log_mass.shape[-1]
        mass = jnp.exp(self.log_mass)
        centres = (jnp.arange(g) + 0.5) / g
        inside = jnp.stack([jnp.sum(mass.sum(-1) * centres, -1), jnp.sum(mass.sum(-2) * centres, -1)], -1)
        return self.lower + inside * (self.upper - self.lower)


def kalman_step(model: Model, posterior: GaussianTruth, observation: Observation) -> GaussianTruth:
    """One prediction and one update of a linear-Gaussian model, under the conditions that it is bound to.

    Components that were not observed have no row in B; with dt = 0 nothing is predicted.
    """
    system = model.linear_gaussian()
    assert system is not None  # `kalman` says so
    A, Q, B, R = system.A, system.Q, system.B, system.R
    still = stays(model)
    if still is not None:
        A, Q = jnp.where(still, jnp.eye(A.shape[0]), A), jnp.where(still, 0.0, Q)
    mean, cov = A @ posterior.mean, A @ posterior.cov @ A.T + Q
    if system.a is not None:
        mean = mean + (system.a if still is None else jnp.where(still, 0.0, system.a))
    left = jnp.asarray(observation).reshape(-1) - (0.0 if system.b is None else system.b) - B @ mean
    observed = conditions_of(model).observed
    missing = jnp.zeros(left.shape, bool) if observed is None else ~jnp.asarray(observed).reshape(-1)
    B = jnp.where(missing[:, None], 0.0, B)
    R = jnp.where(missing[:, None] | missing, jnp.diag(missing.astype(R.dtype)), R)
    left = jnp.where(missing, 0.0, left)
    innovation_cov = B @ cov @ B.T + R
    gain = jnp.linalg.solve(innovation_cov, B @ cov).T
    increment = jax.scipy.stats.multivariate_normal.logpdf(left, jnp.zeros_like(left), innovation_cov)
    increment += 0.5 * jnp.log(2 * jnp.pi) * jnp.sum(missing)
    shrink = jnp.eye(mean.shape[0]) - gain @ B
    cov = shrink @ cov @ shrink.T + gain @ R @ gain.T  # Joseph's form stays symmetric and positive
    return GaussianTruth(mean + gain @ left, cov, posterior.log_evidence + increment)


def kalman(model: Model, stream: Stream | Observations) -> GaussianTruth:
    """Exact posteriors of a linear-Gaussian model after each observation (stage 1 first)."""
    stream = stream if isinstance(stream, Stream) else Stream(jnp.asarray(stream))
    first = bound_to(model, jax.tree.map(lambda leaf: leaf[0], stream), jnp.zeros(()))
    system = first.linear_gaussian()
    if system is None:
        raise InputError(f"{type(model).__name__} does not say that it is linear and Gaussian (`linear_gaussian`).")

    def advance(carry, row):
        posterior, time = carry
        time = time + (1.0 if row.dt is None else row.dt)
        posterior = kalman_step(bound_to(model, row, time), posterior, row.observations)
        return (posterior, time), posterior

    begun = GaussianTruth(system.mean, system.cov, jnp.zeros((), system.mean.dtype))
    return jax.lax.scan(advance, (begun, jnp.zeros(())), stream)[1]


def bound_to(model: Model, row: Stream, time) -> Model:
    """The model under the conditions of one row of a stream."""
    words = all_needs(model)
    given = Conditions(row.dt, time if "time" in words else None, row.inputs, row.observed)
    return bind(model, given, shape=None if row.observed is None else jnp.shape(row.observations))


def grid(model: Model, stream: Stream | Observations, *, cells: int = 256, refinements: int = 3) -> GridTruth:
    """Posteriors in the plane after each observation, for any model without dynamics.

    The first grid covers the prior generously; it then closes in on where the posterior is.
    """
    if int(model.dim) != 2 or isinstance(model, StateSpaceModel):
        raise InputError(f"a grid needs a model with dim 2 and no dynamics; {type(model).__name__} is not one.")
    stream = stream if isinstance(stream, Stream) else Stream(jnp.asarray(stream))
    coarse = max(16, cells // 3)  # enough to find the box
    prior = bound_to(model, jax.tree.map(lambda leaf: leaf[0], stream), jnp.zeros(()))
    lower, upper = prior_box(prior)
    num = stream.observations.shape[0]
    times = jnp.arange(1.0, num + 1) if stream.dt is None else jnp.cumsum(stream.dt)

    def at_stage(stage):
        def log_joint(points):
            def include(total, indexed):
                index, row, time = indexed
                here = bound_to(model, row, time)
                value = jax.vmap(here.log_likelihood, (0, None))(points, row.observations)
                return total + jnp.where(index <= stage, value, 0.0), None

            start = jax.vmap(prior.log_prior)(points)
            return jax.lax.scan(include, start, (jnp.arange(num), stream, times))[0]

        box = box_of_mass(log_joint, lower, upper, cells=coarse, refinements=refinements)
        return grid_from_log_density(log_joint, *box, cells=cells)

    return jax.lax.map(at_stage, jnp.arange(num))


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


def exact(model: Model, stream: Stream | Observations) -> Truth | None:
    """The exact posteriors of a stream, or None where no formula or grid applies."""
    if is_linear_gaussian(model):
        return kalman(model, stream)
    if int(model.dim) == 2 and not isinstance(model, StateSpaceModel):
        return grid(model, stream)
    return None


def is_linear_gaussian(model: Model) -> bool:
    """Whether the model says that it is linear and Gaussian."""
    if not offers(model, "linear_gaussian"):
        return False
    example = example_of(model) if conditions_of(model).empty else model
    return example is None or example.linear_gaussian() is not None
