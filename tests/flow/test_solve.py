"""The flow of a linear velocity is the matrix exponential; the density it carries stays one."""

import equinox as eqx
import jax
import numpy as np
import pytest
import scipy.linalg
from jax import numpy as jnp

from pfbr.errors import InputError
from pfbr.flow.likelihood import Likelihood
from pfbr.flow.settings import FlowSettings
from pfbr.flow.solve import SOLVERS, flow
from pfbr.flow.velocities import AffineVelocity, GatedVelocity, ResidualVelocity, Velocity
from pfbr.models import GaussianMixture
from tests.weights import filled

A = np.array([[-0.6, 1.1, 0.0], [-0.4, 0.3, 0.5], [0.2, 0.0, 0.9]])
X = np.random.default_rng(0).normal(size=(4, 3))
LOG_Q = np.array([0.1, -0.5, 2.0, 0.0])
UNSEEN = Likelihood(GaussianMixture(), jnp.zeros(1))  # these velocities do not look at it
ORDER = {"midpoint": 2, "heun": 2, "ralston": 2, "bosh3": 3, "tsit5": 5, "dopri5": 5}


class Linear(Velocity):
    """dx/dt = A x."""

    matrix: jax.Array

    def prepare(self, key, support, likelihood):
        return None

    def __call__(self, t, points, support, context, likelihood):
        return points @ self.matrix.T, jnp.broadcast_to(jnp.trace(self.matrix), points.shape[:1])


class Logistic(Velocity):
    """dx/dt = x (1 − x): x(1) = e x / (1 + x (e − 1)), whose derivative is e / (1 + x (e − 1))²."""

    def prepare(self, key, support, likelihood):
        return None

    def __call__(self, t, points, support, context, likelihood):
        return points * (1 - points), jnp.sum(1 - 2 * points, axis=-1)


@eqx.filter_jit
def moved(settings, velocity, points, log_density, likelihood=UNSEEN, *, support=None, reverse=False):
    seen = points if support is None else support
    context = velocity.prepare(jax.random.key(0), seen, likelihood)
    return flow(settings, velocity, context, likelihood, points, log_density, support=support, reverse=reverse)


def linear_error(**settings):
    got = moved(FlowSettings(**settings), Linear(jnp.asarray(A)), jnp.asarray(X), jnp.asarray(LOG_Q))
    np.testing.assert_allclose(got.log_density, LOG_Q - np.trace(A), rtol=1e-9)  # constant: right for any step
    return np.max(np.abs(got.points - X @ scipy.linalg.expm(A).T))


@pytest.mark.parametrize("solver", SOLVERS)
def test_equal_steps_reach_the_matrix_exponential_at_the_solvers_order(solver, x64):
    few, many = (2, 16) if ORDER[solver] == 5 else (16, 32)
    coarse, fine = linear_error(solver=solver, steps=few), linear_error(solver=solver, steps=many)
    assert fine < 1e-3
    assert abs(np.log2(coarse / fine) / np.log2(many / few) - ORDER[solver]) < 0.5


@pytest.mark.parametrize(
    "solver", [s if s in ("heun", "tsit5") else pytest.param(s, marks=pytest.mark.slow) for s in SOLVERS]
)
def test_adaptive_steps_reach_the_tolerance(solver, x64):
    tolerance = 1e-4 if ORDER[solver] == 2 else 1e-6
    assert linear_error(solver=solver, steps=4, tolerance=tolerance, max_steps=2000) < 20 * tolerance


def test_log_density_falls_by_the_log_derivative_of_the_map(x64):
    x = jnp.asarray(np.random.default_rng(1).uniform(0.1, 2.0, size=(5, 2)))
    got = moved(FlowSettings(solver="tsit5", steps=16), Logistic(), x, jnp.zeros(5))
    growth = 1 + x * (np.e - 1)
    np.testing.assert_allclose(got.points, np.e * x / growth, rtol=1e-7)
    np.testing.assert_allclose(got.log_density, -np.sum(1 - 2 * np.log(growth), axis=1), rtol=1e-6)


def test_closed_form_steps_are_for_affine_velocities():
    with pytest.raises(InputError, match="closed-form solver needs an affine velocity"):
        moved(FlowSettings(solver="closed-form"), Logistic(), jnp.ones((3, 2)), jnp.ones(3))
    with pytest.raises(InputError, match="equal steps"):
        FlowSettings(solver="closed-form", tolerance=1e-3)


def test_running_out_of_steps_is_not_passed_off_as_an_answer():
    got = moved(
        FlowSettings(solver="bosh3", tolerance=1e-6, max_steps=2, steps=100), Logistic(), jnp.ones((3, 2)), jnp.ones(3)
    )
    assert np.all(np.isnan(got.points))
    assert np.all(np.isnan(got.log_density))


def network(name):
    if name == "gated":
        return filled(1, lambda: GatedVelocity(jax.random.key(0), 2, (1,), width=6, num_layers=2))
    if name == "residual":
        return filled(1, lambda: ResidualVelocity(jax.random.key(0), 2, width=6, num_features=4), scale=0.5)
    return AffineVelocity()


def mixture_set(n=9):
    points = jnp.asarray(np.random.default_rng(2).normal(size=(n, 2)))
    return points, jnp.zeros(n), Likelihood(GaussianMixture(), jnp.asarray([0.7]))


@pytest.mark.parametrize("name", ["gated", pytest.param("gaussian", marks=pytest.mark.slow)])
def test_there_and_back(name, x64):
    points, log_density, likelihood = mixture_set()
    velocity, settings = network(name), FlowSettings(solver="midpoint", steps=400)
    context = velocity.prepare(jax.random.key(0), points, likelihood)
    run = eqx.filter_jit(flow)
    there = run(settings, velocity, context, likelihood, points, log_density)
    back = run(settings, velocity, context, likelihood, there.points, there.log_density, reverse=True)
    assert np.max(np.abs(there.points - points)) > 0.05
    np.testing.assert_allclose(back.points, points, atol=1e-4)
    np.testing.assert_allclose(back.log_density, log_density, atol=1e-4)


@pytest.mark.parametrize("name", ["gaussian", pytest.param("residual", marks=pytest.mark.slow)])
def test_a_set_that_carries_equal_points_moves_them_equally(name, x64):
    points, log_density, likelihood = mixture_set()
    velocity, settings = network(name), FlowSettings(steps=4)
    own = moved(settings, velocity, points, log_density, likelihood)
    carried = moved(settings, velocity, points, log_density, likelihood, support=points)
    np.testing.assert_allclose(carried.points, own.points, rtol=1e-10)
    np.testing.assert_allclose(carried.log_density, own.log_density, atol=1e-10)


@pytest.mark.slow
def test_both_gradients_agree(x64):
    """Back-propagation through the steps, and the continuous adjoint, with respect to weights and points."""
    points, log_density, likelihood = mixture_set(5)
    towards = jnp.asarray(np.random.default_rng(3).normal(size=(5, 2)))

    @eqx.filter_jit
    def gradient(settings):
        def scalar(arguments):
            velocity, x = arguments
            got = moved(settings, velocity, x, log_density, likelihood)
            return jnp.sum(towards * got.points) + jnp.sum(got.log_density)

        return eqx.filter_grad(scalar)((network("gated"), points))

    ours, adjoint = (
        gradient(FlowSettings(solver="midpoint", steps=256, gradient=how)) for how in ("checkpoint", "adjoint")
    )
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(adjoint), strict=True):
        scale = np.max(np.abs(a), initial=0.0)
        np.testing.assert_allclose(a, b, atol=1e-4 * scale)
        assert scale > 0 or a.size == 0


@pytest.mark.parametrize("how", ["checkpoint", "adjoint"])
def test_the_gradient_of_a_linear_flow_is_that_of_the_exponential(how, x64):
    """With respect to the points, and to the velocity's own weights: Σ towards · D expm(A)[dA] x."""
    towards = np.random.default_rng(4).normal(size=X.shape)
    settings = FlowSettings(solver="dopri5", steps=16, gradient=how)

    @jax.jit
    def gradients(matrix, x):
        def scalar(matrix, x):
            got = moved(settings, Linear(matrix), x, jnp.asarray(LOG_Q))
            return jnp.sum(towards * got.points) + jnp.sum(got.log_density)

        return jax.grad(scalar, (0, 1))(matrix, x)

    by_matrix, by_points = gradients(jnp.asarray(A), jnp.asarray(X))
    np.testing.assert_allclose(by_points, towards @ scipy.linalg.expm(A), rtol=1e-7)
    units = np.eye(9).reshape(9, 3, 3)
    along = [np.sum(towards * (X @ scipy.linalg.expm_frechet(A, unit)[1].T)) for unit in units]
    np.testing.assert_allclose(by_matrix, np.reshape(along, (3, 3)) - len(X) * np.eye(3), atol=1e-6)


@pytest.mark.parametrize("name", ["gated", "gaussian", pytest.param("residual", marks=pytest.mark.slow)])
def test_a_carried_density_integrates_to_one(name):
    """x ~ q_0 carried to (y, log q): for any density p, the mean of p(y)/q(y) is one. 20,000 draws, z = 6.

    With the log density left as it was the answer would be far from one, so a wrong sign cannot pass.
    """
    support, _, likelihood = mixture_set(64)
    velocity = network(name)
    x = jax.random.normal(jax.random.key(5), (20_000, 2))
    before = jnp.sum(jax.scipy.stats.norm.logpdf(x), -1)
    got = moved(FlowSettings(steps=16), velocity, x, before, likelihood, support=support)
    centre, std = jnp.mean(got.points, 0), 0.6 * jnp.std(got.points, 0)  # narrower than q, so that p/q is bounded
    target = jnp.sum(jax.scipy.stats.norm.logpdf(got.points, centre, std), -1)
    ratio, unmoved = np.exp(target - got.log_density), np.exp(target - before)
    error = ratio.std() / np.sqrt(len(ratio))
    assert error < 0.02
    assert abs(ratio.mean() - 1) < 6 * error
    assert abs(unmoved.mean() - 1) > 10 * error


def test_bad_settings_are_refused():
    for wrong, word in (({"solver": "rk4"}, "heun"), ({"gradient": "none"}, "adjoint"), ({"steps": 0}, "steps")):
        with pytest.raises(InputError, match=word):
            FlowSettings(**wrong)
