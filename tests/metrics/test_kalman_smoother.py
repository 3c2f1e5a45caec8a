"""Rauch, Tung and Striebel against one large Gaussian that is conditioned on everything at once."""

import numpy as np
from jax import numpy as jnp

from pfbr.metrics.kalman_smoother import kalman_smoother
from pfbr.models import LinearDynamics


def test_means_and_covariances_are_those_of_the_joint_law():
    steps, A, B = 5, np.array([[0.8, 0.3], [-0.2, 0.7]]), np.array([[1.0, 0.5]])
    model = LinearDynamics(A, B, 0.6, 0.4, 1.3)
    observations = np.random.default_rng(0).normal(size=(steps, 1))
    # (x_1 … x_T) is a linear function of (x_0, ε_1 … ε_T)
    root = np.zeros((2 * steps, 2 * (steps + 1)))
    for t in range(steps):
        for s in range(t + 2):
            power = np.linalg.matrix_power(A, t + 1 - s)
            root[2 * t : 2 * t + 2, 2 * s : 2 * s + 2] = power * (1.3 if s == 0 else 0.6)
    cov, seen = root @ root.T, np.kron(np.eye(steps), B)
    gain = cov @ seen.T @ np.linalg.inv(seen @ cov @ seen.T + 0.16 * np.eye(steps))
    mean, cov = gain @ observations[:, 0], cov - gain @ seen @ cov
    found = kalman_smoother(model, jnp.asarray(observations, jnp.float32))
    np.testing.assert_allclose(np.ravel(found.mean), mean, atol=1e-5)
    for t in range(steps):
        np.testing.assert_allclose(found.cov[t], cov[2 * t : 2 * t + 2, 2 * t : 2 * t + 2], atol=1e-5)
