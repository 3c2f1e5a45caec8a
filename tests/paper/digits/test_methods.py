"""Settings to choose from, and how an operator is trained."""

from pfbr.paper.digits.methods import CHOSEN, candidates, recipe


def test_every_remembered_choice_exists():
    options = candidates(4, 32)
    assert options.keys() == CHOSEN.keys()
    assert all(CHOSEN[name] < len(options[name]) for name in options)


def test_operators_learn_from_predictions():
    plan = recipe("digits", segments=1)
    assert (plan.objective, plan.kind, plan.settings["segments"]) == ("prequential", "informed", 1)
    assert plan.architecture == {"qmc": False}  # all methods start from the same particles
