"""Operators by name: settings are written out, a description builds the same skeleton again."""

import jax
import pytest
from jax import numpy as jnp

import pfbr
from pfbr.errors import InputError
from pfbr.inference.architectures import NAMES, architecture_of, build, choose, described, skeleton, to_json
from pfbr.models import GaussianMean, MiniBatch

MODEL = GaussianMean(2)


@pytest.mark.parametrize("name", NAMES)
def test_a_description_builds_the_same_skeleton_again(name):
    architecture = choose(name, MiniBatch(MODEL, 3) if name == "informed" else MODEL)
    operator = build(jax.random.key(0), architecture)
    again = skeleton(described(to_json(architecture)))
    shapes = lambda tree: [jnp.shape(leaf) for leaf in jax.tree.leaves(tree)]
    assert shapes(operator) == shapes(again)
    assert jax.tree.structure(operator) == jax.tree.structure(again)


def test_settings_of_the_solver_are_among_them():
    assert build(jax.random.key(0), choose("residual", MODEL, steps=7)).settings.steps == 7
    assert choose("auto", MODEL).name == "residual"


class Mute(pfbr.Model):
    """No observation can be drawn from it."""

    dim: int = 2

    def sample_prior(self, key):
        return jax.random.normal(key, (2,))

    def log_prior(self, x):
        return -0.5 * x @ x

    def log_likelihood(self, x, observation):
        return -0.5 * jnp.sum((x - observation) ** 2)


WRONG = {
    "an unknown name": (lambda: choose("transformer", MODEL), "must be one of auto"),
    "a reader of what cannot be drawn": (lambda: choose("paper", Mute()), "sample_observation"),
    "an unknown setting": (lambda: build(jax.random.key(0), choose("residual", MODEL, wings=2)), "does not take"),
    "nothing said": (lambda: architecture_of(pfbr.gaussian_operator()), "does not say how it was made"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_built_says_why(name):
    do, message = WRONG[name]
    with pytest.raises(InputError, match=message):
        do()
