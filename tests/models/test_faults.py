"""What a user's method raised, in one line, with what to write instead."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr.errors import ModelError
from pfbr.models.faults import in_words


def raised(function) -> BaseException:
    try:
        jax.eval_shape(function, jnp.zeros(2))
    except (Exception, SystemExit) as error:
        return error
    raise AssertionError("nothing was raised")


@pytest.mark.parametrize(
    ("function", "found", "advice"),
    [
        (lambda x: np.asarray(x), "TracerArrayConversionError", "jax.numpy"),
        (lambda x: 1.0 if x[0] > 0 else 2.0, "TracerBoolConversionError", "jnp.where or jax.lax.cond"),
        (lambda x: jnp.zeros(3)[: int(x[0])], "ConcretizationTypeError", "jnp.where or jax.lax.cond"),
        (lambda x: exit(3), "exits", "does not end the program"),
        (lambda x: x @ jnp.ones(3), "TypeError", "for one x"),
        (lambda x: (_ for _ in ()).throw(ModelError("mine")), "mine", "Mend"),
        (lambda x: (_ for _ in ()).throw(ValueError("a\nb" + "c" * 999)), "ValueError: a", "for one x"),
    ],
)
def test_in_one_line(function, found, advice):
    said, what = in_words(raised(function))
    assert found in said
    assert advice in what
    assert "\n" not in said
    assert len(said) < 300
