"""What is measured of predictions, where the answer is known."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr.baselines import Prior
from pfbr.io.records import Measurement
from pfbr.paper.digits import scoring
from pfbr.paper.digits.scoring import choose, measurements, predict, worst_starts
from tests.paper.digits.predictions import predictions
from tests.weighing import Weighing


def found(lines: list[Measurement], metric: str, stage: int | None) -> float:
    (one,) = (m.value for m in lines if m.metric == metric and m.stage == stage)
    return one


def test_averages_begin_after_the_first_update():
    lines = measurements("svi", predictions(np.array([0.4, 0.6, 0.4, 0.9])), 16, 0)
    assert [found(lines, scoring.ACCURACY, stage) for stage in range(4)] == [0.0, 1.0, 0.5, 2 / 3]
    assert np.isclose(found(lines, scoring.SCORE, 2), -(np.log(0.6) + np.log(0.4)) / 2)
    assert found(lines, scoring.BATCH_ACCURACY, 2) == 0.0
    assert np.isclose(found(lines, scoring.SCORE, None), -np.log([0.6, 0.4, 0.9]).mean())
    assert found(lines, scoring.FRESH_ACCURACY, 3) == 0.9
    assert found(lines, scoring.DEVIATION, 3) == 0.0


def test_calibration_counts_what_was_called_an_eight():
    """Half the labels are eights. Given 0.9 to every label, eights are called 0.9 and sixes 0.1, and all are right."""
    lines = measurements("svi", predictions(np.array([0.5, 0.95])), 16, 0)
    assert found(lines, scoring.COUNT, 9) == 4
    assert found(lines, scoring.COUNT, 0) == 4
    assert np.isclose(found(lines, scoring.PREDICTED, 9), 0.95)
    assert found(lines, scoring.OBSERVED, 9) == 1.0
    assert found(lines, scoring.OBSERVED, 0) == 0.0
    assert np.isclose(found(lines, scoring.CALIBRATION_ERROR, None), 0.05)


@pytest.fixture(scope="module")
def streams(store):
    keys = jax.random.split(jax.random.key(0), 3)
    return jax.jit(jax.vmap(lambda k: store.sample(k, 4).observations))(keys)


def test_the_best_setting_wins_on_the_tuning_streams(store, streams):
    keys = jax.random.split(jax.random.key(1), 3)
    best, scores = choose(keys, [Prior(), Weighing()], store.model, streams, 64)
    assert best == 1
    assert scores[1] < scores[0]


def test_bad_starts_are_the_worst_of_all_and_reach_the_method(store, streams):
    keys = jax.random.split(jax.random.key(2), 40)
    method = Prior()
    chosen, accuracy = worst_starts(keys, method, store.model, streams[0], 3, 16)
    everyone = predict(
        keys, method, store.model, jnp.repeat(streams[:1], 40, axis=0), jnp.repeat(streams[:1, 0], 40, axis=0), 16
    )
    first = np.mean(everyone.predicted[:, 0] > np.log(0.5), axis=1)
    assert np.allclose(accuracy, np.sort(first)[:3])
    assert chosen.shape == (3,)
