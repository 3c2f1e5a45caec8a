"""A model from a few words: a built-in name with settings, or an object in a Python file."""

import difflib
import importlib.machinery
import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from pfbr.checks import shortened
from pfbr.cli.foreign import guarded
from pfbr.errors import FileError, InputError, ModelError, PfbrError
from pfbr.io.arrays import read_npz
from pfbr.models import GaussianMean, GaussianMixture, LinearDynamics, LogisticRegression, Model


def _gaussian_mean(dim: int = 2, prior_std: float = 1.0, observation_std: float = 3.0) -> Model:
    return GaussianMean(_positive("dim", dim), prior_std, observation_std)


def _gaussian_mixture(prior_std: float = 1.0, observation_std: float = 1.0) -> Model:
    return GaussianMixture(prior_std, observation_std)


def _logistic_regression(dim: int = 2, prior_std: float = 1.0) -> Model:
    return LogisticRegression(_positive("dim", dim), prior_std)


def _linear_dynamics(
    dim: int = 2,
    seed: int = 0,
    transition_std: float = 1.0,
    observation_std: float = 1.0,
    prior_std: float = 1.0,
    system: str = "",
) -> Model:
    """A random system by size and seed, or the matrices A and B of an .npz file."""
    stds = {"transition_std": transition_std, "observation_std": observation_std, "prior_std": prior_std}
    if not system:
        drawn = LinearDynamics.random(seed, _positive("dim", dim))
        return LinearDynamics(drawn.A, drawn.B, **stds)
    if not os.path.exists(system):
        raise FileError(f"there is no file {system!r}. `system=` needs an .npz file with matrices A and B.")
    stored = read_npz(system, kinds="fiub")
    if missing := {"A", "B"} - stored.keys():
        raise FileError(
            f"{system!r} lacks {' and '.join(sorted(missing))}; it holds {', '.join(sorted(stored)) or 'nothing'}. "
            "Write it with np.savez(file, A=A, B=B)."
        )
    for name in stds.keys() & stored.keys():
        if stored[name].shape != ():
            raise FileError(f"{system!r}: `{name}` must be one number; it has shape {stored[name].shape}.")
    try:
        return LinearDynamics(
            stored["A"], stored["B"], **{name: float(stored.get(name, std)) for name, std in stds.items()}
        )
    except InputError as error:
        raise FileError(f"{system!r}: {error}") from None


BUILT_IN: dict[str, Callable[..., Model]] = {
    "gaussian-mean": _gaussian_mean,
    "gaussian-mixture": _gaussian_mixture,
    "linear-dynamics": _linear_dynamics,
    "logistic-regression": _logistic_regression,
}


def resolve(spec: str) -> Model:
    """The model that `spec` names; every way to be wrong has an error that says what to write instead."""
    path, colon, attribute = spec.rpartition(":")
    if spec.endswith(".py"):
        raise InputError(f"{spec!r} names a file but no model in it. Write {spec}:NAME, NAME a model defined there.")
    if colon and path.endswith(".py"):
        return _from_file(Path(path), attribute)
    name, _, settings = spec.partition(":")
    if name not in BUILT_IN:
        raise InputError(
            f"there is no built-in model {shortened(name)}.{_closest(name, BUILT_IN)} Built in: {', '.join(BUILT_IN)}; "
            "for a model of your own write file.py:attribute."
        )
    build = BUILT_IN[name]
    return build(**_parse_settings(name, settings, inspect.signature(build).parameters))


def _parse_settings(name: str, text: str, known: Any) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise InputError(f"{part!r} in the settings of {name} is not of the form key=value.")
        if key not in known:
            raise InputError(f"{name} has no setting {key!r}.{_closest(key, known)} It knows: {', '.join(known)}.")
        if key in settings:
            raise InputError(f"the setting {key} of {name} is given twice.")
        settings[key] = _parsed(f"the setting {key} of {name}", value, known[key].annotation)
        if key.endswith("_std") and not 0 < settings[key] < float("inf"):
            raise InputError(f"the setting {key} of {name} must be positive and finite; got {value!r}.")
    return settings


def _parsed(what: str, value: str, kind: Any) -> Any:
    expected = {int: "a whole number", float: "a number", str: "a text"}[kind]
    try:
        if "_" in value and kind is not str:
            raise ValueError  # Python would take 1_0 for 10
        return kind(value)
    except ValueError:
        raise InputError(f"{what} must be {expected}; got {shortened(value)}.") from None


def _from_file(path: Path, attribute: str) -> Model:
    module = _load(path)
    public = [name for name in vars(module) if not name.startswith("_")]
    if not hasattr(module, attribute):
        raise InputError(
            f"{str(path)!r} has no attribute {attribute!r}.{_closest(attribute, public)} "
            f"Models it defines: {', '.join(_models_in(module)) or 'none'}."
        )
    found = getattr(module, attribute)
    if not isinstance(found, Model) and callable(found):
        try:
            with guarded(f"{attribute!r} in {str(path)!r}"):
                found = found()
        except PfbrError:
            raise
        except Exception as error:
            raise ModelError(
                f"{attribute!r} in {str(path)!r} could not be called without arguments "
                f"({_in_words(error)}). Give a finished model instead, e.g. `model = {attribute}(...)`, and name that."
            ) from error
    if not isinstance(found, Model):
        raise ModelError(
            f"{attribute!r} in {str(path)!r} is of type {type(found).__name__}, not a model. "
            "Derive it from pfbr.Model (or pfbr.StateSpaceModel) and name an instance, a class or a function."
        )
    return found


class _Unwritten(importlib.machinery.SourceFileLoader):
    """Leaves no __pycache__ beside a user's file: a command that is refused changes nothing."""

    def set_data(self, path, data, *, _mode=0o666) -> None:
        pass


def _load(path: Path) -> ModuleType:
    if not path.is_file():
        siblings = [file.name for file in path.parent.glob("*.py")] if path.parent.is_dir() else []
        raise FileError(
            f"there is no file {str(path)!r}.{_closest(path.name, siblings)} Check the path before the colon."
        )
    name = f"pfbr_spec_{path.stem}"
    description = importlib.util.spec_from_file_location(name, path, loader=_Unwritten(name, str(path)))
    if description is None or description.loader is None:
        raise FileError(f"{str(path)!r} cannot be run as Python.")
    module = importlib.util.module_from_spec(description)
    sys.modules[name] = module  # dataclasses look their module up while they are made
    try:
        with guarded(repr(str(path))):
            sys.path.insert(0, str(path.parent.resolve()))  # as when the file is run: its neighbours can be imported
            description.loader.exec_module(module)
    except PfbrError:
        sys.modules.pop(name, None)
        raise
    except BaseException as error:
        sys.modules.pop(name, None)
        if isinstance(error, KeyboardInterrupt):
            raise
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        line = error.lineno if isinstance(error, SyntaxError) else (lines[-1] if lines else None)
        where = f", line {line}" if line else ""
        raise ModelError(f"{str(path)!r}{where} fails when it is run: {_in_words(error)}") from error
    return module


def _in_words(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def _models_in(module: ModuleType) -> list[str]:
    def counts(value: Any) -> bool:
        own_class = isinstance(value, type) and issubclass(value, Model) and value.__module__ == module.__name__
        return isinstance(value, Model) or own_class

    return [name for name, value in vars(module).items() if counts(value)]


def _closest(name: str, candidates: Any) -> str:
    near = difflib.get_close_matches(name, list(candidates), n=1, cutoff=0.5)
    return f" Did you mean {near[0]!r}?" if near else ""


def _positive(name: str, value: int) -> int:
    if value < 1:
        raise InputError(f"the setting {name} must be at least 1; got {value}.")
    return value
