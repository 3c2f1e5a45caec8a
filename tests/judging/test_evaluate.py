"""An evaluation can be taken up again, says what it measured, and takes what comes with an observation."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr.baselines import EnKF, Exact, Prior
from pfbr.errors import InputError
from pfbr.inference.method import Stream
from pfbr.io.records import Records
from pfbr.judging.evaluate import (
    ABOVE,
    MEMORY,
    PREDICTIVE,
    SECONDS,
    evaluate,
    measure_cost,
    true_draws,
)
from pfbr.models import LogisticRegression
from tests.judging.drifting import Drifting

N = 64


class Counting(EnKF):
    """The ensemble filter, which counts how often it is asked to start."""

    def init(self, key, model, num_particles):
        Counting.starts.append(num_particles)  # type: ignore[attr-defined]
        return super().init(key, model, num_particles)


Counting.starts = []  # type: ignore[attr-defined]


def test_evaluation_measures_distance_above_exact_and_goes_on_where_it_stopped(tmp_path, gaussian_mean, streams):
    """Exact draws of another seed are 0 above exact within z = 5 of their error; the prior is far above."""
    truth = true_draws(gaussian_mean, streams, N, key=jax.random.key(1), num_draws=500)
    records = Records(tmp_path)
    seen = []
    settings = {"key": jax.random.key(2), "num_particles": N, "truth": truth, "seed": 3, "records": records}
    methods = {"exact": Exact(), "prior": Prior()}
    first = evaluate(gaussian_mean, streams, methods, progress=lambda *what: seen.append(what), **settings)
    assert [what[0] for what in seen] == ["exact", "prior", "done"]
    above = {name: [m for m in first if m.method == name and m.metric == ABOVE] for name in methods}
    assert [m.stage for m in above["exact"]] == [1, 2, 3, 4, None]
    assert above["exact"][-1].value == pytest.approx(np.mean([m.value for m in above["exact"][:-1]]), abs=1e-6)
    assert all(abs(m.value) < 5 * m.error for m in above["exact"])
    assert all(m.value > 0.3 for m in above["prior"])
    cost = {m.metric: m.value for m in first if m.method == "exact" and m.stage is None}
    assert 0 < cost[SECONDS] < 1
    assert cost[MEMORY] > N * 2 * 4  # at least the particles themselves
    assert records.measurements() == first

    again = evaluate(gaussian_mean, streams, {"exact": Counting()}, **settings)
    assert Counting.starts == []  # type: ignore[attr-defined]
    assert again == [m for m in first if m.method in ("exact", "prior")]


def test_the_exact_predictive_score_is_the_evidence(gaussian_mean, streams):
    """−log p(next | past) has a closed form here; 2048 exact draws are within 0.05 of it on average."""
    measured = evaluate(
        gaussian_mean, streams, {"exact": Exact()}, key=jax.random.key(4), num_particles=2048, truth=None, costs=False
    )
    values = [m.value for m in measured if m.metric == PREDICTIVE and m.stage is not None]
    x = np.asarray(streams)
    for m, value in enumerate(values, start=1):
        mean, var = x[:, :m].sum(1) / (m + 1), 1 + 1 / (m + 1)
        exact = 0.5 * ((x[:, m] - mean) ** 2).sum(-1) / var + np.log(2 * np.pi * var)
        assert abs(value - exact.mean()) < 0.05
    assert not [m for m in measured if m.metric == ABOVE]


def test_times_inputs_and_gaps_reach_truth_method_and_score(irregular):
    """Elapsed times and inputs move the unknown by far more than the noise: without them nothing would fit."""
    drawn, observations = irregular
    seen = ~np.isnan(observations)
    stream = Stream(jnp.asarray(np.where(seen, observations, 0)), drawn.dt, drawn.inputs, jnp.asarray(seen))
    model = Drifting()
    truth = true_draws(model, stream, N, key=jax.random.key(5), num_draws=500)
    measured = evaluate(
        model, stream, {"exact": Exact()}, key=jax.random.key(6), num_particles=N, truth=truth, costs=False
    )
    above = [m for m in measured if m.metric == ABOVE]
    assert all(abs(m.value) < 5 * m.error for m in above)
    # the predictive score of 64 draws is within a few tenths of Kalman's evidence
    predictive = next(m.value for m in measured if m.metric == PREDICTIVE and m.stage is None)
    gained = -np.diff(truth.truth.log_evidence, axis=1)
    assert abs(predictive - float(np.mean(gained))) < 0.3
    assert float(truth.truth.log_evidence[0, 1]) == float(truth.truth.log_evidence[0, 0])  # nothing was seen there


def test_a_cost_is_that_of_one_update_under_its_conditions(irregular):
    drawn, _ = irregular
    first = Stream(drawn.observations[0], drawn.dt[0], drawn.inputs[0])
    cost = measure_cost(jax.random.key(0), EnKF(), Drifting(), first, N)
    assert cost.keys() == {SECONDS, MEMORY}
    assert cost[MEMORY] > N * 4


def test_a_model_without_a_formula_has_no_true_draws():
    model = LogisticRegression(3)
    streams = Stream(jnp.zeros((1, 2, 1)), inputs=jnp.zeros((1, 2, 3)))
    assert true_draws(model, streams, 8, key=jax.random.key(0)) is None


def test_a_single_number_is_no_stream(gaussian_mean):
    with pytest.raises(InputError, match="streams first"):
        evaluate(gaussian_mean, jnp.zeros(3), {}, key=jax.random.key(0), num_particles=4, truth=None)
