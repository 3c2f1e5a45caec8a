"""Draws of the prior, weighed by all rows at once: fair, with the evidence of the new row, and aware of small modes."""

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.inference.adaptive.static.fresh import TIMES, fresh_look, no_look
from pfbr.inference.adaptive.static.past import empty_past
from pfbr.inference.adaptive.static.target import Target
from tests.inference.adaptive.static.problems import kalman, linear_gaussian

ROWS = jnp.array([[1.0, 0.5, 0.3], [-0.2, 1.0, 1.0]])


def look(key, target, past, row):
    drawn = Target(target.log_prior, target.log_likelihood, lambda k, num: 2.0 * jax.random.normal(k, (num, 2)))
    return fresh_look(key, drawn, past, row, 256)


def test_mean_and_evidence_are_kalmans():
    """Over 32 keys, z < 5."""
    past = empty_past(ROWS[0], 1).append(ROWS[0])
    run = jax.jit(jax.vmap(lambda key: look(key, linear_gaussian(), past, ROWS[1])))
    said = run(jax.random.split(jax.random.key(0), 32))
    (_, _, before), (mean, _, after) = kalman(ROWS)
    means = np.asarray(jnp.mean(said.points, axis=1), float)
    assert np.all(np.abs(means.mean(0) - mean) < 5 * means.std(0, ddof=1) / np.sqrt(32))
    ratios = np.asarray(said.log_ratio, float)
    assert abs(ratios.mean() - (after - before)) < 5 * ratios.std(ddof=1) / np.sqrt(32) + 0.01
    totals = np.asarray(said.log_evidence, float)
    assert abs(totals.mean() - after) < 5 * totals.std(ddof=1) / np.sqrt(32) + 0.01
    assert np.all((said.ess > 20) & (said.ess < TIMES * 256))


def test_where_nothing_is_looked_at_nothing_counts():
    points = jnp.ones((4, 2))
    assert float(no_look(points).ess) == 0.0
    np.testing.assert_array_equal(no_look(points).points, points)


def test_a_row_that_rules_every_draw_out_leaves_none():
    target = linear_gaussian()
    impossible = Target(target.log_prior, lambda x, row: -jnp.inf * jnp.ones(()))
    said = jax.jit(lambda key: look(key, impossible, empty_past(ROWS[0], 1), ROWS[0]))(jax.random.key(0))
    assert float(said.ess) == 0.0
    assert np.all(np.isfinite(said.points))
