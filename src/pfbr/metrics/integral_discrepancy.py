"""The error of an expectation: |E_q h − E_p h| for functions whose mean under a Gaussian has a formula."""

from abc import abstractmethod

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.metrics.scores import Estimate
from pfbr.metrics.truth import GaussianTruth
from pfbr.particles.particles import Particles
from pfbr.typing import Key, Point


class TestFunction(eqx.Module):
    """h on R^d, and its mean under N(mean, cov)."""

    __test__ = False  # a class of functions to test posteriors with, which pytest must not collect

    @abstractmethod
    def __call__(self, x: Point) -> Array:
        """h(x)."""

    @abstractmethod
    def gaussian_mean(self, mean: Point, cov: Float[Array, "d d"]) -> Array:
        """E h(x) for x ~ N(mean, cov)."""


class Identity(TestFunction):
    """h(x) = x."""

    def __call__(self, x: Point) -> Array:
        return x

    def gaussian_mean(self, mean: Point, cov: Float[Array, "d d"]) -> Array:
        return mean


class Quadratic(TestFunction):
    """h(x) = xᵀ A x, with mean tr(A Σ) + mᵀ A m."""

    A: Float[Array, "d d"]

    def __call__(self, x: Point) -> Array:
        return x @ self.A @ x

    def gaussian_mean(self, mean: Point, cov: Float[Array, "d d"]) -> Array:
        return jnp.trace(self.A @ cov) + mean @ self.A @ mean


class Bilinear(TestFunction):
    """h(x) = (A x + a)ᵀ (B x + b), with mean tr(Aᵀ B Σ) + (A m + a)ᵀ (B m + b)."""

    A: Float[Array, "k d"]
    a: Float[Array, " k"]
    B: Float[Array, "k d"]
    b: Float[Array, " k"]

    def __call__(self, x: Point) -> Array:
        return (self.A @ x + self.a) @ (self.B @ x + self.b)

    def gaussian_mean(self, mean: Point, cov: Float[Array, "d d"]) -> Array:
        return jnp.trace(self.A.T @ self.B @ cov) + (self.A @ mean + self.a) @ (self.B @ mean + self.b)


def random_functions(key: Key, dim: int) -> dict[str, TestFunction]:
    """One function of each kind; the entries of matrices and vectors are N(0, 1/d)."""
    keys = jax.random.split(key, 5)
    scale = dim**-0.5
    A, B, C = (scale * jax.random.normal(k, (dim, dim)) for k in keys[:3])
    a, b = (scale * jax.random.normal(k, (dim,)) for k in keys[3:])
    return {"x": Identity(), "xAx": Quadratic(A), "(Ax+a)(Bx+b)": Bilinear(B, a, C, b)}


def integral_discrepancy(particles: Particles, function: TestFunction, truth: GaussianTruth) -> Estimate:
    """‖Σ w_n h(x_n) − E h‖, and the standard error of the sum under independent particles."""
    values = jax.vmap(function)(particles.points).reshape(particles.num_particles, -1)
    w = jnp.exp(particles.log_weights)
    mean = w @ values
    error = jnp.sqrt(jnp.sum(w[:, None] ** 2 * (values - mean) ** 2))
    return Estimate(jnp.linalg.norm(mean - function.gaussian_mean(truth.mean, truth.cov)), error)
