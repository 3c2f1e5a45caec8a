"""pfbr: online Bayesian inference. Particles and one observation go in, the updated particles come out."""

import importlib
from typing import TYPE_CHECKING, Any

from pfbr.version import VERSION

if TYPE_CHECKING:  # what a type checker and an editor see; at run time each is loaded when first asked for
    from pfbr import errors, models
    from pfbr.inference.core import init, step
    from pfbr.inference.operator import Operator, gaussian_operator
    from pfbr.inference.operator_file import load, read_header, save
    from pfbr.inference.panel.panel import Panel
    from pfbr.inference.panel.posteriors import Posteriors
    from pfbr.inference.posterior import Posterior, Trace
    from pfbr.inference.pretrained import pretrained
    from pfbr.inference.registry import as_method
    from pfbr.inference.run import run
    from pfbr.inference.session import Session
    from pfbr.inference.to_arviz import to_arviz
    from pfbr.inference.to_xarray import to_xarray
    from pfbr.io.compiled import keep_compiled
    from pfbr.models.base import Model, StateSpaceModel
    from pfbr.models.constraints import correlation, interval, ordered, positive, simplex
    from pfbr.training.fit import fit
    from pfbr.training.settings import TrainingSettings

_WHERE = {
    "Model": "models.base",
    "Operator": "inference.operator",
    "Panel": "inference.panel.panel",
    "Posterior": "inference.posterior",
    "Posteriors": "inference.panel.posteriors",
    "Session": "inference.session",
    "StateSpaceModel": "models.base",
    "Trace": "inference.posterior",
    "TrainingSettings": "training.settings",
    "as_method": "inference.registry",
    "correlation": "models.constraints",
    "fit": "training.fit",
    "gaussian_operator": "inference.operator",
    "init": "inference.core",
    "interval": "models.constraints",
    "keep_compiled": "io.compiled",
    "load": "inference.operator_file",
    "ordered": "models.constraints",
    "positive": "models.constraints",
    "pretrained": "inference.pretrained",
    "read_header": "inference.operator_file",
    "run": "inference.run",
    "save": "inference.operator_file",
    "simplex": "models.constraints",
    "step": "inference.core",
    "to_arviz": "inference.to_arviz",
    "to_xarray": "inference.to_xarray",
}
__version__ = VERSION
_ROOMS = ("baselines", "errors", "inference", "judging", "metrics", "models", "scale", "training")

__all__ = [
    "Model",
    "Operator",
    "Panel",
    "Posterior",
    "Posteriors",
    "Session",
    "StateSpaceModel",
    "Trace",
    "TrainingSettings",
    "__version__",
    "as_method",
    "correlation",
    "errors",
    "fit",
    "gaussian_operator",
    "init",
    "interval",
    "keep_compiled",
    "load",
    "models",
    "ordered",
    "positive",
    "pretrained",
    "read_header",
    "run",
    "save",
    "simplex",
    "step",
    "to_arviz",
    "to_xarray",
]


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        found = getattr(importlib.import_module(f"pfbr.{_WHERE[name]}"), name)
    elif name in _ROOMS:
        found = importlib.import_module(f"pfbr.{name}")
    else:
        raise AttributeError(f"module 'pfbr' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_ROOMS})
