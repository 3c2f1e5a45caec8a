"""Rows are written one behind the other, read in blocks, dropped from the front and taken out of the middle."""

import numpy as np
from jax import numpy as jnp

from pfbr.inference.adaptive.static.past import BLOCK, empty_past


def filled(number, capacity=2 * BLOCK):
    past = empty_past(jnp.zeros(2), capacity)
    for i in range(number):
        past = past.append(jnp.array([i, -i], float))
    return past


def test_room_is_made_in_whole_blocks():
    assert empty_past(jnp.zeros(2), 1).capacity == BLOCK
    assert empty_past(jnp.zeros(2), BLOCK + 1).capacity == 2 * BLOCK


def test_nothing_is_kept_where_there_is_no_room():
    past = empty_past(jnp.zeros(2), 0).append(jnp.ones(2))
    assert past.capacity == 0
    assert int(past.count) == 0


def test_a_block_holds_the_rows_in_order_and_a_valid_one_in_place_of_none():
    past = filled(3)
    rows, real = past.block(jnp.asarray(0), jnp.array([7.0, 7.0]))
    np.testing.assert_array_equal(rows[:4, 0], [0, 1, 2, 7])
    assert int(real.sum()) == 3
    assert int(past.num_blocks) == 1


def test_the_oldest_go_first():
    past = filled(5).drop(2)
    rows, real = past.block(jnp.asarray(0), jnp.zeros(2))
    np.testing.assert_array_equal(rows[:3, 0], [2, 3, 4])
    assert int(real.sum()) == 3


def test_a_row_is_taken_out_of_the_middle():
    past = filled(4)
    np.testing.assert_array_equal(past.row(jnp.asarray(2)), [2.0, -2.0])
    once = past.without(jnp.asarray(2))
    np.testing.assert_array_equal(once.rows[: int(once.count), 0], [0, 1, 3])
    np.testing.assert_array_equal(once.append(jnp.array([9.0, 9.0])).rows[3], [9.0, 9.0])


def test_the_last_row_of_a_full_buffer_is_taken_out():
    full = filled(BLOCK, BLOCK)
    once = full.without(jnp.asarray(BLOCK - 1))
    assert int(once.count) == BLOCK - 1
    np.testing.assert_array_equal(once.rows[: BLOCK - 1], full.rows[: BLOCK - 1])
