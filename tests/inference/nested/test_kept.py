"""Rows kept: what a full buffer lets go, and filters run over the rest."""

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.inference.nested.cloud import fresh_seeds
from pfbr.inference.nested.inner import InnerFilters
from pfbr.inference.nested.kept import no_rows
from pfbr.inference.nested.stand_in import fitted
from pfbr.models.conditions import Conditions, bind
from tests.inference.nested.local_level import LocalLevel

MODEL = bind(LocalLevel(), Conditions(params={"log_step": jnp.zeros(())}), shape=(1,))


def test_a_full_buffer_lets_go_what_its_fit_has_seen():
    kept = no_rows(MODEL, 4, 1)
    fit = fitted(jnp.arange(4.0)[:, None], jnp.full(4, -jnp.log(4.0)), jnp.zeros((4, 2, 1)), jnp.zeros((4, 2)))
    for number in range(1, 7):
        kept = kept.with_room()
        assert kept.next_number == number
        kept = kept.append(MODEL, jnp.asarray([float(number)]), jnp.asarray(0.5))
        if kept.due:
            kept = kept.with_fit(fit)
    assert kept.start.in_use
    assert kept.first == 3
    np.testing.assert_array_equal(kept.rows.observations[: kept.count, 0], [3.0, 4.0, 5.0, 6.0])
    assert kept.fitted_at == 3  # taken again with the next row
    np.testing.assert_allclose(kept.corrected(jnp.asarray(1.0)).reference, [0.5, 0.5, 0.5, 1.5])


def test_a_replay_is_the_filter_step_by_step():
    filters = InnerFilters(LocalLevel(), (1,), 8)
    thetas, seeds = jnp.asarray([[-1.0], [0.0]]), fresh_seeds(jax.random.key(0), 2)
    kept = no_rows(MODEL, 4, 1)
    clouds, total = filters.begin(thetas, seeds, kept.start), jnp.zeros(2)
    for y in (0.3, -0.4, 1.0):
        row = jnp.asarray([y])
        clouds, gained = filters.step(thetas, seeds, clouds, kept.next_number, row, Conditions())
        kept, total = kept.append(MODEL, row, jnp.asarray(-1.0)), total + gained + 1.0
    replayed, again = kept.replayed(filters, thetas, seeds)
    np.testing.assert_allclose(again, total, atol=1e-5)
    np.testing.assert_allclose(replayed.points, clouds.points, atol=1e-5)
