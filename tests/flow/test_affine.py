"""Steps in closed form solve the same equation as a solver, and their inverse root is smooth everywhere."""

import equinox as eqx
import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr.flow.affine import inverse_root
from pfbr.flow.likelihood import Likelihood
from pfbr.flow.settings import FlowSettings
from pfbr.flow.solve import flow
from pfbr.flow.velocities import AffineVelocity
from pfbr.models import GaussianMixture

of = jax.jit(inverse_root)
along = jax.jit(lambda matrix, direction: jax.jvp(inverse_root, (matrix,), (direction,))[1])


def test_closed_form_steps_solve_the_same_equation_at_second_order(x64):
    """A likelihood that is not quadratic, against a solver with many steps; there and back again, too."""
    points, log_density = jnp.asarray(np.random.default_rng(2).normal(size=(40, 2))), jnp.zeros(40)
    likelihood, velocity = Likelihood(GaussianMixture(), jnp.asarray([0.7])), AffineVelocity()

    @eqx.filter_jit
    def there_and_back(settings, *, back):
        context = velocity.prepare(jax.random.key(0), points, likelihood)
        there = flow(settings, velocity, context, likelihood, points, log_density)
        if not back:
            return there, None
        return there, flow(settings, velocity, context, likelihood, there.points, there.log_density, reverse=True)

    right, _ = there_and_back(FlowSettings(solver="bosh3", steps=128), back=False)

    def error(steps):
        there, back = there_and_back(FlowSettings(solver="closed-form", steps=steps), back=True)
        return [
            np.max(np.abs(there.points - right.points)),
            np.max(np.abs(there.log_density - right.log_density)),
            np.max(np.abs(back.points - points)),
        ]

    coarse, fine = np.array(error(8)), np.array(error(32))
    assert np.all(fine < 2e-3)
    assert np.all(np.log2(coarse / fine) / 2 > 1.7), (coarse, fine)


@pytest.mark.parametrize("value", [-3.0, -0.6, -0.5, 0.0, 0.7, 50.0])
def test_the_inverse_root_is_positive_and_smooth_also_where_curvature_is_negative(value, x64):
    """(1 + λ)^(−½) where that is defined with room to spare; elsewhere positive, and its slope continues."""
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    matrix = jnp.asarray(basis @ np.diag([value, value, 0.3]) @ basis.T)
    root = of(matrix)
    if value > -0.5:
        np.testing.assert_allclose(root @ root @ (np.eye(3) + matrix), np.eye(3), atol=1e-12)
    assert np.all(np.linalg.eigvalsh(root) > 0)
    direction = jnp.asarray(rng.normal(size=(3, 3)))
    direction = direction + direction.T
    slope = along(matrix, direction)
    numeric = (of(matrix + 1e-5 * direction) - of(matrix - 1e-5 * direction)) / 2e-5
    np.testing.assert_allclose(slope, numeric, rtol=1e-3, atol=1e-4 * np.max(np.abs(numeric)))
