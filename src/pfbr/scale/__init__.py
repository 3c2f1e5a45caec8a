"""Beyond one machine: streams by key on Spark, several processes, one set of particles over many devices."""

import importlib
from typing import Any

_FILES = ("particles", "processes", "spark")


def __getattr__(name: str) -> Any:
    if name not in _FILES:
        raise AttributeError(f"module 'pfbr.scale' has no attribute {name!r}")
    return importlib.import_module(f"pfbr.scale.{name}")
