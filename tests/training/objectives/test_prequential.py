"""Learning from predictions: what the loss is, what it teaches, and what it refuses."""

import equinox as eqx
import jax
import numpy as np
import pytest

import pfbr
from pfbr.errors import InputError
from pfbr.inference.method import step_key
from pfbr.inference.operator import gaussian_operator
from pfbr.metrics.prequential import log_predictive, prequential
from pfbr.models import MiniBatch
from pfbr.paper.digits.model import LabelledRows
from pfbr.paper.digits.rotations import RotatedDigits
from pfbr.training import TrainingSettings, fit
from pfbr.training.objectives.prequential import PrequentialObjective

KEY = jax.random.key(0)


@pytest.fixture(scope="module")
def store() -> RotatedDigits:
    """Forty 'images' of three features; the first says, but not surely, whether it is an eight."""
    features = jax.random.normal(KEY, (40, 3))
    labels = jax.random.bernoulli(jax.random.key(1), jax.nn.sigmoid(3 * features[:, 0]))
    return RotatedDigits(features, labels.astype(float), batch=4)


def test_the_loss_of_a_stream_is_what_was_predicted_badly(store):
    settings = TrainingSettings(num_particles=16, length=3)
    operator = gaussian_operator(solver="heun", steps=1)  # anything that updates will do, and this is compiled soon
    loss = eqx.filter_jit(lambda objective: objective.loss(KEY, operator))(PrequentialObjective(store, settings))
    draw_key, _, run_key = jax.random.split(KEY, 3)
    task = eqx.filter_jit(lambda key: store.sample(key, 4))(draw_key)
    look = eqx.filter_jit(lambda state, batch: log_predictive(operator.particles(state), task.model, batch))
    state = eqx.filter_jit(operator.init)(step_key(run_key, 0), task.model, 16)
    losses, update = [], eqx.filter_jit(operator.update)
    for number, batch in enumerate(task.observations, start=1):
        losses.append(-np.mean(look(state, batch)))
        state, _ = update(step_key(run_key, number), task.model, state, batch)
    assert np.isclose(loss, np.mean(losses[1:]), rtol=1e-5)


@pytest.mark.slow
def test_training_by_predictions_learns_what_the_tasks_share(store, tmp_path):
    """All tasks have the same labels up to 15°: after 60 steps the first update is already better than Bayes' rule
    without that knowledge; the operator survives its file."""
    settings = TrainingSettings(
        steps=60,
        num_particles=24,
        length=2,
        segments=2,
        learning_rate=0.02,
        validate_every=30,
        validation_tasks=8,
    )
    operator, report = fit(
        store.model, operator="informed", objective="prequential", settings=settings, family=store, progress=False
    )
    assert report.history[-1]["score"] < 0.9 * report.history[0]["score"]
    pfbr.save(tmp_path / "o.pfbr", operator)
    again = pfbr.load(tmp_path / "o.pfbr")
    observations = store.sample(jax.random.key(5), 3).observations
    one, two = (prequential(KEY, o, store.model, observations, 24) for o in (operator, again))
    assert np.array_equal(one, two)
    assert pfbr.read_header(tmp_path / "o.pfbr")["objective"] == "prequential"
    plain = prequential(KEY, gaussian_operator(), store.model, observations, 24)
    assert one[1].mean() > plain[1].mean()


def test_it_refuses_what_it_cannot_do():
    model = MiniBatch(LabelledRows(2), 2)
    with pytest.raises(InputError, match="prequential"):
        fit(model, objective="accuracy", settings=TrainingSettings(steps=1), progress=False)
    settings = TrainingSettings(steps=1, priors="generative")
    with pytest.raises(InputError, match="own prior"):
        fit(model, operator="informed", objective="prequential", settings=settings, progress=False)
