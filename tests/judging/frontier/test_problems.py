"""The truths that the frontier is judged by agree with other ways to find them."""

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.judging.frontier import problems
from pfbr.judging.frontier.problems import by_brute_force, by_kalman, distances, logistic
from pfbr.metrics.truth import grid_from_log_density
from pfbr.models.linear_dynamics import LinearDynamics
from pfbr.models.logistic_regression import LogisticRegression


def test_importance_sampling_of_a_regression_agrees_with_a_grid():
    model = LogisticRegression(2)
    judged = logistic(model, 3)
    std = np.sqrt(np.diagonal(judged.cov, axis1=1, axis2=2))

    @jax.jit
    def by_grid(lower, upper):
        def log_joint(points):
            logits = judged.stream.inputs @ points.T
            fit = judged.stream.observations * logits - jax.nn.softplus(logits)
            return jax.vmap(model.log_prior)(points) + jnp.sum(fit, axis=0)

        return grid_from_log_density(log_joint, lower, upper, cells=96).mean

    mean = by_grid(jnp.asarray(judged.mean[-1] - 6 * std[-1]), jnp.asarray(judged.mean[-1] + 6 * std[-1]))
    assert judged.error < 0.01
    np.testing.assert_allclose(mean, judged.mean[-1], atol=0.02 * std[-1].min())


def test_brute_force_agrees_with_kalman_and_tells_its_own_error(monkeypatch):
    monkeypatch.setattr(problems, "TRUTH_PARTICLES", 4096)
    model = LinearDynamics([[0.9]], [[1.0]])
    exact = by_kalman(model, 1)
    found = by_brute_force(model, 1, exact.stream)
    off = np.sqrt(np.mean(distances(found.mean, exact) ** 2))
    assert 0.2 * off < found.error < 5 * off < 0.2


def test_the_truth_is_no_distance_from_itself():
    judged = by_kalman(LinearDynamics([[0.9, 0.1], [0.0, 0.8]], [[1.0, 0.5]]), 1)
    np.testing.assert_array_equal(distances(judged.mean, judged), 0.0)
    one_off = judged.mean + np.sqrt(np.diagonal(judged.cov, axis1=1, axis2=2)) * [1.0, 0.0]
    assert np.all(distances(one_off, judged) >= 1 / np.sqrt(2) - 1e-6)  # correlated unknowns make it longer
