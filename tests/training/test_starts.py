"""Training begins at the best that is there, and says what it began from."""

import jax
import pytest

import pfbr
from pfbr.inference.architectures import architecture_of, choose
from pfbr.models import GaussianMixture, LinearDynamics, LogisticRegression
from pfbr.training import TrainingSettings
from pfbr.training.starts import starting_operator

SETTINGS = TrainingSettings(steps=1, num_particles=32, length=2, batch=1, validate_every=1, validation_tasks=2)
KEY = jax.random.key(0)


def begun(model, better, **settings):
    """The name that it begins from where operators with such a velocity are better."""
    asked = []

    def score(operator):
        asked.append(type(operator.velocity).__name__)
        return 0.0 if better(operator) else float("nan")

    design, _ = starting_operator(KEY, "auto", model, settings, score)
    return design.name, asked


def test_the_better_one_on_the_held_out_tasks_is_taken():
    model = LogisticRegression(3)
    learned = lambda operator: type(operator.velocity).__name__ == "MapVelocity"
    assert begun(model, learned) == ("general", ["ResidualVelocity", "MapVelocity"])
    assert begun(model, lambda operator: not learned(operator))[0] == "residual"


def test_two_static_unknowns_have_an_operator_of_their_own():
    shipped = pfbr.pretrained("static-2d")
    same = lambda operator: operator.provenance.document == shipped.provenance.document
    assert begun(GaussianMixture(), same)[0] == "residual"
    assert begun(LinearDynamics.random(0, 2), same)[1] == ["ResidualVelocity", "MapVelocity"]


def test_settings_of_an_architecture_are_of_the_residual_one():
    assert begun(LogisticRegression(3), lambda operator: True, width=4) == ("residual", [])


@pytest.mark.parametrize("operator", ["general", "residual"])
def test_auto_is_as_good_as_either_before_training(operator):
    """The first entry of the history is the score that it was chosen by."""
    model = LogisticRegression(3)
    fit = lambda name: pfbr.fit(model, operator=name, settings=SETTINGS, progress=False)
    chosen, report = fit("auto")
    assert report.history[0]["score"] <= fit(operator)[1].history[0]["score"]
    assert architecture_of(chosen).name in ("general", "residual")


def test_a_name_alone_begins_there():
    design, _ = starting_operator(KEY, "general", LogisticRegression(3), {}, lambda operator: 1 / 0)
    assert design == choose("general", LogisticRegression(3))
