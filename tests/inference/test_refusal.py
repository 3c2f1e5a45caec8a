"""A step without a posterior is refused, with what is known about why and where."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr.errors import LikelihoodError
from pfbr.inference.info import Info
from pfbr.inference.refusal import in_words, refuse_without_posterior
from pfbr.particles.particles import Particles


def three_stages(points):
    """Particles that lead with stages, as a scan stacks them."""
    return jax.vmap(lambda each: Particles(each, jnp.zeros(4)))(points)


FINE = three_stages(jnp.zeros((3, 4, 2)))


def test_a_right_step_passes():
    refuse_without_posterior(FINE, Info(possible=np.array([1.0, 0.2, 1.0]), undefined=np.zeros(3)), in_words)
    refuse_without_posterior(FINE, Info(), in_words)


WRONG = {
    "nan somewhere": (FINE, Info(undefined=np.array([0.0, 0.25, 0.0])), "observation 2 .*NaN at 25.0 %"),
    "impossible everywhere": (FINE, Info(possible=np.array([1.0, 1.0, 0.0])), "observation 3 .*−inf at every"),
    "no evidence": (FINE, Info(log_predictive=np.array([0.3, -np.inf, -2.0])), "observation 2 .*−inf at every"),
    "particles lost": (
        three_stages(FINE.points.at[0, 1, 1].set(jnp.nan)),
        Info(),
        "observation 1 .*not your model",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_first_wrong_stage_is_named(name):
    particles, info, message = WRONG[name]
    with pytest.raises(LikelihoodError, match=message):
        refuse_without_posterior(particles, info, in_words)


def test_streams_are_named_too():
    assert in_words(np.array([1, 4])) == "observation 5 of stream 2"
