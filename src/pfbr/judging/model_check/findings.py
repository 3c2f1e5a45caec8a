"""What was found about a model, question by question, and the notebook in which it is written down."""

import dataclasses
from collections.abc import Callable
from typing import Any, NoReturn

import jax

from pfbr.models.faults import in_words
from pfbr.typing import Key

GOOD, NOTE, FAULT = "good", "note", "fault"


@dataclasses.dataclass(frozen=True)
class Finding:
    """One question to one method. `level` is good, note (worth knowing; the model works) or fault."""

    method: str
    question: str
    level: str
    found: str
    advice: str = ""


class NothingMoreToAsk(Exception):  # noqa: N818 - a way out, not an error
    """Nothing more can be asked about a method; the fault is written down."""


class Notebook:
    """Findings in the order in which they were made; a user's method is called through it."""

    def __init__(self, key: Key):
        self.key = key
        self.findings: list[Finding] = []

    def good(self, method: str, question: str, found: str) -> None:
        self.findings.append(Finding(method, question, GOOD, found))

    def note(self, method: str, question: str, found: str, advice: str = "") -> None:
        self.findings.append(Finding(method, question, NOTE, found, advice))

    def fault(self, method: str, question: str, found: str, advice: str) -> None:
        self.findings.append(Finding(method, question, FAULT, found, advice))

    def stop(self, method: str, question: str, found: str, advice: str) -> NoReturn:
        """A fault after which the method cannot be asked anything else."""
        self.fault(method, question, found, advice)
        raise NothingMoreToAsk

    def call(self, method: str, function: Callable, *args) -> Any:
        """A compiled call of a user's method; an error of any kind is a finding."""
        compiled = function if hasattr(function, "lower") else compiled_quickly(function)
        try:
            return jax.block_until_ready(compiled(*args))
        except Exception as error:
            self.stop(method, "runs", *in_words(error))

    def shape_of(self, method: str, function: Callable, *args) -> Any:
        """Shape and type of what a user's method returns, without computing it."""
        try:
            return jax.eval_shape(function, *args)
        except Exception as error:
            self.stop(method, "runs", *in_words(error))

    def guarded(self, ask: Callable, *args, otherwise: Any = None) -> Any:
        """Ask, and go on with something else where that ends early."""
        try:
            return ask(*args)
        except NothingMoreToAsk:
            return otherwise

    def key_of(self, name: str) -> Key:
        """A key for each thing that is drawn."""
        return jax.random.fold_in(self.key, int.from_bytes(name.encode()[-7:]) % 2**31)


def compiled_quickly(function: Callable) -> Any:
    """For a few calls of a second in all, compiling well would take longer than it saves."""
    return jax.jit(function, compiler_options={"xla_backend_optimization_level": 0})
