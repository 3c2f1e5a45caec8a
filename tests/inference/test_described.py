"""A method is made again from its name and settings, or refused by name when it is written, not when it is read."""

import dataclasses
import json

import equinox as eqx
import pytest
from jax import numpy as jnp

import pfbr
from pfbr import baselines
from pfbr.errors import FileError, InputError
from pfbr.inference.adaptive.method import Adaptive
from pfbr.inference.corrected import Corrected
from pfbr.inference.described import describe, rebuild
from pfbr.inference.method import Method
from pfbr.models import LinearDynamics

SYSTEM = LinearDynamics([[0.9, 0.2], [-0.1, 0.8]], [[1.0, 0.0], [0.3, 0.7]])


def again(method):
    arrays: dict = {}
    return rebuild(json.loads(json.dumps(describe(method, arrays))), arrays, "it")


def test_settings_come_back():
    static = dataclasses.replace(Adaptive().static, weigh_ess=0.3)
    for method in (
        Adaptive(history=32, static=static),
        Corrected(pfbr.pretrained("mixture"), history=4),
        Corrected(pfbr.gaussian_operator(steps=2)),
        pfbr.as_method("collocation", SYSTEM),
    ):
        assert eqx.tree_equal(again(method), method)
    trained = pfbr.pretrained("static-2d")
    assert again(trained).provenance.document == trained.provenance.document


def test_rivals_are_described():
    refused = {}
    for name, rival in baselines.REGISTRY.items():
        if name == "aesmc-gru":  # its sibling takes long enough to make
            continue
        method = rival.ready(SYSTEM)
        try:
            assert type(again(method)) is type(method)
        except InputError as error:
            refused[name] = str(error)
    assert list(refused) == ["aesmc-mlp"]
    assert all(message.startswith("AESMC cannot be described in a file: its `") for message in refused.values())


class Homemade(Method):
    function: object = eqx.field(static=True, default=jnp.tanh)

    def init(self, key, model, num_particles): ...

    def update(self, key, model, state, observation): ...

    def particles(self, state): ...


@pytest.mark.parametrize("method", [Homemade(), Homemade(function="name")], ids=["a function", "unknown here"])
def test_a_method_that_cannot_be_described_is_refused_by_name(method):
    with pytest.raises(InputError, match="Homemade"):
        describe(method, {})


def test_an_operator_that_was_changed_by_hand_is_refused():
    trained = pfbr.pretrained("mixture")
    faster = dataclasses.replace(trained, settings=dataclasses.replace(trained.settings, steps=2))
    with pytest.raises(InputError, match="Operator with these settings"):
        describe(faster, {})


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"kind": "Unheard", "settings": {}}, "'Unheard'"),
        ({"kind": "Adaptive", "settings": {"hue": 1}}, "'hue'"),
        ({"kind": "CollocationOperator", "settings": {"ridge": -1.0}}, "ridge"),
        ({"kind": "Adaptive"}, "cannot read"),
        ({"operator": "nowhere"}, "cannot read"),
        (3, "does not describe a method"),
    ],
)
def test_a_description_that_makes_no_method_is_refused(document, message):
    with pytest.raises(FileError, match=message):
        rebuild(document, {}, "the/file")
