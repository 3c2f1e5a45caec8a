"""A linear dynamical system with Gaussian noise: the problem that the Kalman filter solves."""

import jax
import numpy as np
from jax import numpy as jnp
from jaxtyping import Array

from pfbr.checks import as_array, check_memory, checked_count, checked_scale
from pfbr.errors import InputError
from pfbr.models.base import LinearGaussian, StateSpaceModel, normal_log_density
from pfbr.typing import Key, Numbers, Observation, Point, Real, Scalar


class LinearDynamics(StateSpaceModel):
    """x_0 ~ N(0, prior_std² I), x_m = A x_{m-1} + transition_std ε, o_m = B x_m + observation_std δ.

    x_0 moves once before the first observation.
    """

    A: Array
    B: Array
    transition_std: Real = 1.0
    observation_std: Real = 1.0
    prior_std: Real = 1.0

    def __init__(
        self,
        A: Numbers,
        B: Numbers,
        transition_std: Real = 1.0,
        observation_std: Real = 1.0,
        prior_std: Real = 1.0,
    ):
        self.A, self.B = _matrix("A", A), _matrix("B", B)
        if self.A.ndim != 2 or self.A.shape[0] != self.A.shape[1] or self.A.size == 0:
            raise InputError(f"`A` must be a square matrix (d, d); got shape {self.A.shape}.")
        if self.B.ndim != 2 or self.B.shape[1] != self.A.shape[0]:
            raise InputError(
                f"`B` must have shape (k, {self.A.shape[0]}) to go with A {self.A.shape}; got {self.B.shape}."
            )
        stds = {"transition_std": transition_std, "observation_std": observation_std, "prior_std": prior_std}
        for name, std in stds.items():
            checked_scale(name, std)
        self.transition_std = transition_std
        self.observation_std = observation_std
        self.prior_std = prior_std

    @property
    def dim(self) -> int:
        return self.A.shape[-1]

    @classmethod
    def random(cls, seed: int, dim: int, *, scale: float = 0.25, radius: tuple[float, float] = (0.9, 1.0)):
        """A system as in the paper: entries of A and B are `scale` N(0, 1), A drawn until its spectral radius fits."""
        checked_count("dim", dim, least=1)
        check_memory(f"`dim` = {dim}", 16 * dim**2, "A smaller system is needed.")
        rng = np.random.default_rng(checked_count("seed", seed, least=0))
        for _ in range(1_000_000):
            A = scale * rng.standard_normal((dim, dim))
            if radius[0] <= np.abs(np.linalg.eigvals(A)).max() <= radius[1]:
                return cls(A, scale * rng.standard_normal((dim, dim)))
        raise InputError(f"no {dim} x {dim} matrix with entries {scale} N(0,1) has a spectral radius in {radius}.")

    def sample_prior(self, key: Key) -> Point:
        return self.prior_std * jax.random.normal(key, (self.dim,))

    def prior_from_normal(self, z: Point) -> Point:
        return self.prior_std * z

    def log_prior(self, x: Point) -> Scalar:
        return normal_log_density(x, 0.0, self.prior_std)

    def sample_transition(self, key: Key, x: Point) -> Point:
        return self.A @ x + self.transition_std * jax.random.normal(key, (self.dim,))

    def transition_from_normal(self, x: Point, z: Point) -> Point:
        return self.A @ x + self.transition_std * z

    def transition_mean_and_std(self, x: Point) -> tuple[Point, Point]:
        return self.A @ x, jnp.full(self.dim, self.transition_std)

    def log_transition(self, x_next: Point, x: Point) -> Scalar:
        return normal_log_density(x_next, self.A @ x, self.transition_std)

    def log_likelihood(self, x: Point, observation: Observation) -> Scalar:
        return normal_log_density(observation, self.B @ x, self.observation_std)

    def sample_observation(self, key: Key, x: Point) -> Observation:
        return self.B @ x + self.observation_std * jax.random.normal(key, (self.B.shape[0],))

    def linear_gaussian(self) -> LinearGaussian:
        return LinearGaussian(
            A=self.A,
            Q=self.transition_std**2 * jnp.eye(self.dim),
            B=self.B,
            R=self.observation_std**2 * jnp.eye(self.B.shape[0]),
            mean=jnp.zeros(self.dim),
            cov=self.prior_std**2 * jnp.eye(self.dim),
        )


def _matrix(name: str, values: Numbers) -> Array:
    """Finite numbers; what is traced is trusted."""
    return values if isinstance(values, jax.core.Tracer) else jnp.asarray(as_array(values, name))
