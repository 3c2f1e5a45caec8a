"""Posteriors as named arrays, as JSON and in words."""

import json

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.cli.posteriors import answer_of, arrays_of, in_words, named
from pfbr.inference.info import Info, Move
from pfbr.inference.posterior import Posterior, Trace
from pfbr.particles.particles import equally_weighted

POINTS = jnp.arange(8.0).reshape(4, 2)
PARAMETERS = {"drift": jnp.arange(4.0), "noise": (jnp.ones((4, 3)),)}


def info(**said) -> Info:
    return Info(ess=jnp.asarray(3.0), move=jnp.asarray(Move.SECOND_LOOK), details=said)


def test_leaves_of_a_tree_have_dots_in_their_names():
    assert list(named("mean", np.zeros(2))) == ["mean"]
    assert list(named("mean", {"a": 1.0, "b": [2.0, {"c": 3.0}]})) == ["mean.a", "mean.b.0", "mean.b.1.c"]


def test_parameters_are_kept_beside_the_state():
    held = arrays_of(Posterior(equally_weighted(POINTS), info(), None, PARAMETERS))
    assert held["parameters.mean.drift"] == 1.5
    assert held["parameters.samples.noise.0"].shape == (4, 3)
    answer = answer_of(Posterior(equally_weighted(POINTS), info(), None, PARAMETERS), 2)
    assert answer["parameters"]["mean"]["drift"] == 1.5
    json.dumps(answer, allow_nan=False)


def test_a_detail_cannot_hide_what_is_kept():
    held = arrays_of(Posterior(equally_weighted(POINTS), info(mean=jnp.asarray(7.0), other=jnp.asarray(1.0))))
    assert held["mean"].shape == (2,)
    assert held["info.mean"] == 7
    assert held["other"] == 1
    assert held["move"] == "second look"


def test_json_has_no_word_for_nan():
    answer = answer_of(Posterior(equally_weighted(POINTS), info(rate=jnp.asarray(jnp.nan))), 1)
    assert answer["info"]["rate"] is None
    json.dumps(answer, allow_nan=False)


def test_a_file_in_words():
    many = jax.vmap(equally_weighted)(jnp.stack([POINTS] * 3))
    said = Info(
        ess=jnp.array([4.0, 2.0, 3.0]),
        log_evidence=jnp.array([-1.0, -2.0, -3.5]),
        flagged=jnp.array([0, 1, 1]),
        details={"ood": jnp.array([0.1, 5.0, 0.2])},
    )
    assert in_words(Trace(many, said), 4) == (
        "log evidence -3.50, 2 of 3 steps flagged (first: observation 2), least ESS 2 of 4, "
        "largest out-of-distribution score 5.0."
    )
    assert in_words(Trace(many, Info()), 4) == "3 observations."
