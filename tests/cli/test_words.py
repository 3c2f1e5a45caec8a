"""The texts of the help are true: each name that they give exists, and none is left out."""

import inspect

from pfbr import baselines
from pfbr.cli import calibrate, check, data, words
from pfbr.cli.infer import infer
from pfbr.cli.spec import BUILT_IN
from pfbr.inference import clock, registry
from pfbr.inference.pretrained import NAMES
from pfbr.inference.session import Session
from pfbr.judging.calibration.calibrate import CalibrationSettings
from pfbr.judging.model_check import CheckSettings
from pfbr.paper.digits import StreamSettings
from pfbr.paper.registry import EXPERIMENTS


def test_names_are_those_of_the_package():
    assert tuple(baselines.names()) == words.RIVALS
    assert tuple(EXPERIMENTS) == words.EXPERIMENTS
    assert tuple(BUILT_IN) == words.MODELS
    assert tuple(clock.UNITS) == words.TIME_UNITS


def test_texts_give_every_name():
    for name in (*registry.OWN, *NAMES):
        assert f"`{name}`" in words.METHOD
    for name in words.RIVALS:
        assert name in words.METHOD
    for name in words.MODELS:
        assert name in words.SPEC


def test_defaults_are_those_of_the_settings():
    assert (CalibrationSettings.streams, CalibrationSettings.length) == (calibrate.STREAMS, calibrate.LENGTH)
    assert CheckSettings.draws == check.DRAWS
    assert StreamSettings.variants == data.VARIANTS
    of_session, of_command = (inspect.signature(f).parameters for f in (Session, infer))
    for ours, theirs in {"method": "method", "num_particles": "particles", "key": "seed", "history": "history"}.items():
        assert of_session[ours].default == of_command[theirs].default.default
