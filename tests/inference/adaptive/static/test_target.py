"""Values and scores of prior · past · newᵗ are those of autodiff over all rows, relative to the reference point."""

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.inference.adaptive.static.past import BLOCK, empty_past
from pfbr.inference.adaptive.static.surrogate import no_surrogate
from pfbr.inference.adaptive.static.target import Evaluation, evaluate, row_values
from tests.inference.adaptive.static.problems import banana


def test_sums_over_blocks_are_sums_over_rows(x64):
    target, rows = banana(), jnp.linspace(-1.0, 2.0, BLOCK + 7)[:, None]
    past = empty_past(rows[0], 2 * BLOCK)
    for row in rows[:-1]:
        past = past.append(row)
    points = jax.random.normal(jax.random.key(0), (5, 2))
    reference = jnp.array([0.3, -0.2])
    said = evaluate(target, points, reference, no_surrogate(2, points.dtype), past, rows[-1])

    def whole(x, t):
        likelihood = jax.vmap(lambda r: target.log_likelihood(x, r) - target.log_likelihood(reference, r))(rows[:-1])
        return target.log_prior(x) + jnp.sum(likelihood) + t * target.log_likelihood(x, rows[-1])

    for t in (0.0, 0.4, 1.0):
        value, score = jax.vmap(jax.value_and_grad(lambda x, t=t: whole(x, t)))(points)
        np.testing.assert_allclose(said.value(jnp.asarray(t)), value, rtol=1e-10)
        np.testing.assert_allclose(said.score(jnp.asarray(t)), score, rtol=1e-9)


def test_outside_of_the_support_has_no_density_at_any_share():
    one = jnp.ones(3)
    said = Evaluation(one, one[:, None], jnp.array([0.0, -jnp.inf, jnp.inf]), jnp.array([[0.0], [jnp.nan], [1.0]]))
    np.testing.assert_array_equal(said.value(jnp.asarray(0.5)), [1.0, -jnp.inf, -jnp.inf])
    np.testing.assert_array_equal(said.value(jnp.asarray(0.0)), one)  # 0 · −inf is no number
    np.testing.assert_array_equal(said.score(jnp.asarray(0.5))[1], 0.0)


def test_a_likelihood_that_is_no_number_counts_as_impossible():
    target = banana()
    broken = type(target)(target.log_prior, lambda x, row: jnp.log(x[0]))
    values = row_values(broken, jnp.array([[1.0, 0.0], [-1.0, 0.0]]), jnp.zeros(1))
    np.testing.assert_array_equal(values, [0.0, -jnp.inf])
