"""Operators by name: what `fit` can train, and what a file needs to rebuild one."""

from typing import Any

import equinox as eqx
import jax
from jax import numpy as jnp

from pfbr.checks import shortened
from pfbr.errors import InputError
from pfbr.flow.settings import FlowSettings
from pfbr.flow.transport.mapped import MapVelocity
from pfbr.flow.transport.network import untrained as network
from pfbr.flow.transport.transport import Transport
from pfbr.flow.velocities.affine import AffineVelocity
from pfbr.flow.velocities.base import Velocity
from pfbr.flow.velocities.gated import GatedVelocity
from pfbr.flow.velocities.informed import InformedVelocity
from pfbr.flow.velocities.residual import ResidualVelocity
from pfbr.inference.adaptive.general import shipped
from pfbr.inference.operator import Operator
from pfbr.models.base import Model
from pfbr.models.conditions import observation_shape
from pfbr.typing import Key


class Architecture(eqx.Module):
    """A name, the shapes that it was made for, and its settings: enough to build the operator's skeleton again."""

    name: str
    dim: int | None
    observation_shape: tuple[int, ...] | None
    settings: dict[str, Any]


# FlowSettings fields may be given among an architecture's settings; these are the defaults of each architecture.
# The paper's operator takes four evaluations an update. The residual one was as good with 4 steps as with 8 (mixture,
# 12 development streams: +0.002 and +0.001). Four steps of the training-free one in closed form were as good as 8 of
# Heun's on seven families (development seed 100), exact where those were 0.01 off, and half the evaluations.
_FLOW_DEFAULTS: dict[str, dict[str, Any]] = {
    "paper": {"solver": "heun", "steps": 2},
    "gaussian": {"solver": "closed-form", "steps": 4},
    "general": {"solver": "map", "steps": 1},
    "residual": {"solver": "heun", "steps": 4},
    "informed": {"solver": "heun", "steps": 4},
}
NAMES = tuple(_FLOW_DEFAULTS)
_ANY_DIM = ("gaussian", "general")  # they serve models with any number of unknowns
_READERS = ("paper", "informed")  # they read the observation itself, and so serve one shape of it


def choose(name: str, model: Model, **settings) -> Architecture:
    """The architecture called `name` for a model; "auto" takes the one that learns most."""
    if name == "auto":
        name = "residual"
    if not isinstance(name, str) or name not in NAMES:
        raise InputError(f"`operator` must be one of auto, {', '.join(NAMES)}; got {shortened(name)}.")
    shape = observation_shape(model)
    if name in _READERS and shape is None:
        raise InputError(f"the {name} operator reads the observation itself; the model must have `sample_observation`.")
    return Architecture(
        name,
        None if name in _ANY_DIM else int(model.dim),
        shape if name in _READERS else None,
        dict(_FLOW_DEFAULTS[name], **settings),  # written out, so that a file does not depend on later defaults
    )


def build(key: Key, architecture: Architecture) -> Operator:
    """An operator with fresh weights."""
    settings = dict(_FLOW_DEFAULTS[architecture.name], **architecture.settings)
    flow = FlowSettings(**{f: settings.pop(f) for f in ("solver", "steps", "tolerance", "gradient") if f in settings})
    rest = {f: settings.pop(f) for f in ("qmc", "predictive") if f in settings}
    if not isinstance(rest.get("qmc", True), bool) or rest.get("predictive", "kde") not in ("kde", "mixture"):
        raise InputError(f"the {architecture.name} operator does not take these settings: {shortened(rest)}.")
    try:
        velocity = _velocity(key, architecture, settings)
    except (TypeError, ValueError, ArithmeticError, AttributeError) as error:
        said = shortened(str(error))
        raise InputError(
            f"the {architecture.name} operator does not take these settings: {shortened(settings)} ({said})."
        ) from None
    return Operator(velocity, flow, dim=architecture.dim, observation_shape=architecture.observation_shape, **rest)


def _velocity(key: Key, architecture: Architecture, settings: dict[str, Any]) -> Velocity:
    if architecture.name == "gaussian":
        return AffineVelocity(**settings)
    if architecture.name == "general":
        return _map(key, **settings)
    assert architecture.dim is not None  # `choose` and the file both give it
    if architecture.name == "residual":
        return ResidualVelocity(key, architecture.dim, **settings)
    assert architecture.observation_shape is not None
    if architecture.name == "informed":
        return InformedVelocity(key, architecture.dim, architecture.observation_shape, **settings)
    return GatedVelocity(key, architecture.dim, architecture.observation_shape, **settings)


def _map(key: Key, *, untrained: bool = False) -> MapVelocity:
    """The learned map as it comes with the package, or as it was before it learned anything."""
    return MapVelocity(Transport(network(key)) if untrained else jax.tree.map(jnp.asarray, shipped()))


def to_json(architecture: Architecture) -> dict:
    """The architecture as JSON."""
    return {
        "name": architecture.name,
        "dim": architecture.dim,
        "observation_shape": None if architecture.observation_shape is None else list(architecture.observation_shape),
        "settings": architecture.settings,
    }


def described(entry: dict) -> Architecture:
    """The architecture that `to_json` wrote."""
    shape = entry["observation_shape"]
    return Architecture(entry["name"], entry["dim"], None if shape is None else tuple(shape), entry["settings"])


def architecture_of(operator: Operator) -> Architecture:
    """The architecture of an operator that was trained or loaded."""
    provenance = operator.provenance.document
    if "architecture" not in provenance:
        raise InputError("this operator does not say how it was made; give `fit` the name of one, or one from a file.")
    return described(provenance["architecture"])


def skeleton(architecture: Architecture) -> Operator:
    """The operator's structure, with shapes in place of arrays."""
    return eqx.filter_eval_shape(build, jax.random.key(0), architecture)
