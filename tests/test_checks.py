"""The edge: keys, counts and arrays are what they should be, or refused by name."""

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import numpy as jnp

from pfbr.checks import as_array, checked_count, checked_key
from pfbr.errors import InputError


@given(st.integers(0, 2**63 - 1))
def test_a_seed_is_a_key(seed):
    assert checked_key(seed).shape == ()


def test_both_kinds_of_jax_keys_pass():
    for key in (jax.random.key(1), jax.random.PRNGKey(1)):
        assert checked_key(key) is key


@pytest.mark.parametrize(
    "key", [-1, 2**63, 1.0, "0", None, True, jnp.zeros(2), jnp.zeros(3, jnp.uint32), np.zeros(2, np.uint32)]
)
def test_what_is_no_key_is_refused(key):
    with pytest.raises(InputError, match=r"key|seed"):
        checked_key(key)


@given(st.one_of(st.floats(), st.text(), st.booleans(), st.none(), st.integers(max_value=2)))
def test_what_is_no_count_is_refused_by_name(value):
    with pytest.raises(InputError, match="`rows`"):
        checked_count("rows", value, least=3)


@given(st.lists(st.floats(-1e30, 1e30), max_size=5))
def test_numbers_become_arrays_in_the_precision_in_use(values):
    array = as_array(values, "y")
    assert array.dtype == jnp.result_type(float)
    np.testing.assert_array_equal(array, np.float32(values))


@pytest.mark.parametrize(
    ("value", "gaps", "message"),
    [
        ([1.0, np.nan], False, r"nan at index \(1,\)"),
        ([[1.0], [np.inf]], True, r"inf at index \(1, 0\)"),
        (1e60, False, "inf"),
        ("three", False, "array of numbers"),
        ([[1.0], [1.0, 2.0]], False, "array of numbers"),
        (1j, False, "complex"),
        (None, False, "finite"),
        (object(), False, "array of numbers"),
    ],
)
def test_what_is_no_array_of_numbers_is_refused(value, gaps, message):
    with pytest.raises(InputError, match=message):
        as_array(value, "y", gaps=gaps)


def test_nan_is_a_gap_where_gaps_may_be():
    np.testing.assert_array_equal(as_array([1.0, np.nan], "y", gaps=True), np.float32([1.0, np.nan]))
