"""Named unknowns: from a flat vector of free numbers to the user's dict, and back."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import pfbr
from pfbr.errors import ModelError
from pfbr.models.unknowns import Unknowns


class Holder:
    def __init__(self, unknowns):
        self.unknowns = unknowns


SPEC = {"beta": (3,), "sigma": pfbr.positive, "share": pfbr.simplex(3), "shift": (), "table": (2, 2), "rates": 2}
UNKNOWNS = Unknowns.of(Holder(SPEC))


def test_there_and_back(x64):
    free = jnp.asarray(np.random.default_rng(0).normal(size=UNKNOWNS.size))

    @jax.jit
    def both(free):
        value = UNKNOWNS.constrain(free)
        return value, UNKNOWNS.unconstrain(value), UNKNOWNS.log_det(free)

    value, back, log_det = both(free)
    assert {name: v.shape for name, v in value.items()} == {
        "beta": (3,),
        "sigma": (),
        "share": (3,),
        "shift": (),
        "table": (2, 2),
        "rates": (2,),
    }
    np.testing.assert_allclose(back, free, rtol=1e-12)
    parts = pfbr.positive.log_det(free[3:4]) + pfbr.simplex(3).log_det(free[4:6])
    np.testing.assert_allclose(log_det, parts, rtol=1e-12)


def test_the_flat_vector_is_in_the_order_of_the_declaration():
    value = UNKNOWNS.constrain(jnp.arange(float(UNKNOWNS.size)))
    np.testing.assert_array_equal(value["beta"], [0, 1, 2])
    np.testing.assert_allclose(value["sigma"], np.exp(3.0), rtol=1e-6)
    assert float(value["shift"]) == 6
    np.testing.assert_array_equal(value["table"], [[7, 8], [9, 10]])
    np.testing.assert_array_equal(value["rates"], [11, 12])


def test_every_number_has_a_name():
    assert UNKNOWNS.labels() == [
        *("beta[0]", "beta[1]", "beta[2]"),
        "sigma",
        *("share[0]", "share[1]", "share[2]"),
        "shift",
        *("table[0,0]", "table[0,1]", "table[1,0]", "table[1,1]"),
        *("rates[0]", "rates[1]"),
    ]


def test_a_plain_model_has_none_and_one_declaration_is_read_once():
    assert Unknowns.of(Holder(None)) is None
    assert Unknowns.of(Holder(dict(SPEC))) is UNKNOWNS
    assert Unknowns.of(Holder({"a": [2, 3]})).size == 6


@pytest.mark.parametrize(
    ("spec", "word"),
    [
        ({}, "empty"),
        ({1: (2,)}, "non-empty strings"),
        ({"": (2,)}, "non-empty strings"),
        ({"a": 2.5}, "must be a shape"),
        ({"a": "positive"}, "must be a shape"),
        ({"a": True}, "must be a shape"),
        ({"a": (0,)}, "above zero"),
        ({"a": (-1, 2)}, "above zero"),
        (["a", "b"], "a dict of names"),
    ],
)
def test_what_declares_nothing_is_refused(spec, word):
    with pytest.raises(ModelError, match=word):
        Unknowns.of(Holder(spec))


def test_a_value_that_does_not_fit_is_refused():
    value = UNKNOWNS.constrain(jnp.zeros(UNKNOWNS.size))
    with pytest.raises(ModelError, match="beta, sigma, share, shift, table, rates; got the keys"):
        UNKNOWNS.unconstrain({name: v for name, v in value.items() if name != "beta"})
    with pytest.raises(ModelError, match="expected a dict"):
        UNKNOWNS.unconstrain(jnp.zeros(3))
    with pytest.raises(ModelError, match=r"'beta' has shape \(3,\); got \(2,\)"):
        UNKNOWNS.unconstrain(value | {"beta": jnp.zeros(2)})
