"""A method by name, by file or as it is, and ready for the model; what cannot be had says why."""

import pytest

import pfbr
from pfbr.baselines import BootstrapSMC
from pfbr.errors import InputError, PfbrError
from pfbr.inference.adaptive.method import Adaptive
from pfbr.inference.corrected import Corrected
from pfbr.inference.nested.method import Nested
from pfbr.inference.operator import Operator
from pfbr.models import GaussianMean, LinearDynamics

STILL, MOVING = GaussianMean(2), LinearDynamics.random(0, 2)


class WithParameters(LinearDynamics):
    """A walk whose drift is unknown."""

    def sample_parameters(self, key):
        return {"drift": 0.0}

    def log_parameters(self, params):
        return 0.0


def test_names_become_methods():
    assert isinstance(pfbr.as_method("auto", STILL), Adaptive)
    assert isinstance(pfbr.as_method("gaussian", STILL), Operator)
    assert isinstance(pfbr.as_method("smc", MOVING), BootstrapSMC)
    assert isinstance(pfbr.as_method("auto", WithParameters.random(0, 2)), Nested)


def test_no_more_rows_are_kept_than_there_are():
    assert pfbr.as_method("auto", STILL, history=4096, rows=30).history == 30
    assert pfbr.as_method("auto", STILL, history=7, rows=30).history == 7


def test_a_trained_operator_is_corrected_and_the_training_free_one_is_taken_as_it_is(tmp_path):
    operator = pfbr.pretrained("static-2d")
    assert isinstance(pfbr.as_method(operator, STILL), Corrected)
    assert isinstance(pfbr.as_method("static-2d", STILL), Corrected)
    pfbr.save(tmp_path / "o.pfbr", operator)
    assert isinstance(pfbr.as_method(tmp_path / "o.pfbr", STILL), Corrected)
    free = pfbr.gaussian_operator()
    assert pfbr.as_method(free, STILL) is free


WRONG = {
    "an unknown name": (lambda: pfbr.as_method("particle-magic", STILL), "there is no method 'particle-magic'"),
    "a file that is not there": (lambda: pfbr.as_method("nowhere.pfbr", STILL), "nowhere.pfbr"),
    "an operator of another dimension": (lambda: pfbr.as_method("static-2d", GaussianMean(3)), "dim 2"),
    "a filter for what stands still": (lambda: pfbr.as_method("smc", STILL), "smc"),
    "a rival for parameters": (lambda: pfbr.as_method("smc", WithParameters.random(0, 2)), "parameters beside"),
    "half a row": (lambda: pfbr.as_method("auto", STILL, history=0.5), "`history`"),
    "a list": (lambda: pfbr.as_method(["auto"], STILL), "`method` must be a name"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_had_says_why(name):
    do, message = WRONG[name]
    with pytest.raises(PfbrError, match=message) as caught:
        do()
    assert isinstance(caught.value, InputError) or "file" in name
