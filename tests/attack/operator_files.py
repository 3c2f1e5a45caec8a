"""Operators and checkpoints that are damaged, cut short, or lie about themselves with a right checksum."""

import copy
import functools
import hashlib
import json
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from jax import numpy as jnp

import pfbr
from pfbr.inference.pretrained import pretrained
from pfbr.io import containers
from pfbr.training.state import TrainingState, read_state, write_state
from tests.attack.case import Case, command_refused, refused

GROUP = "files: operators and checkpoints"
WHOLE = (resources.files("pfbr.inference.pretrained") / "mixture.pfbr").read_bytes()
IDENTITY = {"architecture": {"name": "residual"}, "settings": {"steps": 3}, "seed": [0, 1], "model": "m.Model"}
STATE = TrainingState(jnp.ones(3), jnp.zeros(2), jnp.ones(3), 7, 1.5, 0.25, 0, [{"step": 0, "loss": 1.0, "score": 2.0}])


@functools.cache
def parts() -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    return containers.from_bytes(WHOLE, "operator")


def sealed(line: bytes, numbers: bytes, kind: str = "operator") -> bytes:
    """A file with a right checksum, whatever it says."""
    body = line + b"\n" + numbers
    return f"pfbr-{kind} 2 {hashlib.sha256(body).hexdigest()}\n".encode() + body


def with_header(change: Callable[[dict], Any]) -> bytes:
    """The whole operator but for a change of its header."""
    _, _, body = WHOLE.partition(b"\n")
    line, _, numbers = body.partition(b"\n")
    header = copy.deepcopy(json.loads(line))
    changed = change(header)
    return sealed(json.dumps(header if changed is None else changed).encode(), numbers)


def loaded(name: str, content: Callable[[], bytes], says: str = "bad.pfbr") -> Case:
    def attempt(directory: Path) -> Callable[[], Any]:
        path = directory / "bad.pfbr"
        path.write_bytes(content())
        return lambda: pfbr.load(path)

    return refused(GROUP, name, attempt, says)


def shown(name: str, content: Callable[[], bytes]) -> Case:
    def words(directory: Path) -> list[Any]:
        (directory / "bad.pfbr").write_bytes(content())
        return ["show", directory / "bad.pfbr"]

    return command_refused(GROUP, f"pfbr show: {name}", words, "bad.pfbr")


def flipped(bit: int) -> bytes:
    changed = bytearray(WHOLE)
    changed[bit // 8] ^= 1 << (bit % 8)
    return bytes(changed)


def put(*path: Any) -> Callable[[dict], None]:
    """Put the last value where the path before it says."""
    *keys, last, value = path

    def change(header: dict) -> None:
        for key in keys:
            header = header[key]
        header[last] = value

    return change


def drop(*path: Any) -> Callable[[dict], None]:
    *keys, last = path

    def change(header: dict) -> None:
        for key in keys:
            header = header[key]
        del header[last]

    return change


LIES: dict[str, Callable[[dict], Any]] = {
    "the header is a list": lambda h: [1, 2],
    "the header is a number": lambda h: 3,
    "the header is a text": lambda h: "x",
    "the header is null": lambda h: False,
    "an empty header": lambda h: {"arrays": []},
    "no architecture": drop("architecture"),
    "the architecture is a number": put("architecture", 3),
    "the architecture is a list": put("architecture", []),
    "the architecture is a text": put("architecture", "residual"),
    "the architecture is empty": put("architecture", {}),
    "a kind that is none": put("architecture", "name", "transformer"),
    "the kind is a number": put("architecture", "name", 3),
    "the kind is a list": put("architecture", "name", ["residual"]),
    "the kind is a table": put("architecture", "name", {}),
    "no kind": drop("architecture", "name"),
    "no dim": drop("architecture", "dim"),
    "dim is a text": put("architecture", "dim", "2"),
    "dim is null": put("architecture", "dim", None),
    "dim is negative": put("architecture", "dim", -2),
    "dim is a fraction": put("architecture", "dim", 2.5),
    "dim is 10¹²": put("architecture", "dim", 10**12),
    "dim is a list": put("architecture", "dim", [2]),
    "dim is a truth": put("architecture", "dim", True),
    "another dim": put("architecture", "dim", 3),
    "no observation_shape": drop("architecture", "observation_shape"),
    "observation_shape is a number": put("architecture", "observation_shape", 2),
    "observation_shape of texts": put("architecture", "observation_shape", ["a"]),
    "observation_shape is a table": put("architecture", "observation_shape", {"a": 1}),
    "observation_shape is negative": put("architecture", "observation_shape", [-1]),
    "observation_shape of 10¹²": put("architecture", "observation_shape", [10**12]),
    "no settings": drop("architecture", "settings"),
    "settings are a number": put("architecture", "settings", 3),
    "settings are a list": put("architecture", "settings", [1]),
    "settings are null": put("architecture", "settings", None),
    "a setting that is none": put("architecture", "settings", "wings", 2),
    "a solver that is none": put("architecture", "settings", "solver", "euler"),
    "the solver is a number": put("architecture", "settings", "solver", 3),
    "the solver is a list": put("architecture", "settings", "solver", ["heun"]),
    "steps is a text": put("architecture", "settings", "steps", "4"),
    "steps is zero": put("architecture", "settings", "steps", 0),
    "steps is 10¹²": put("architecture", "settings", "steps", 10**12),
    "steps is a fraction": put("architecture", "settings", "steps", 2.5),
    "steps is null": put("architecture", "settings", "steps", None),
    "tolerance is a text": put("architecture", "settings", "tolerance", "small"),
    "width is 10¹²": put("architecture", "settings", "width", 10**12),
    "width is a text": put("architecture", "settings", "width", "8"),
    "width is negative": put("architecture", "settings", "width", -8),
    "width is a list": put("architecture", "settings", "width", [8]),
    "width is a table": put("architecture", "settings", "width", {}),
    "qmc is a text": put("architecture", "settings", "qmc", "yes"),
    "predictive is a list": put("architecture", "settings", "predictive", []),
    "reference statistics are a number": put("reference_statistics", 3),
    "reference statistics are a list": put("reference_statistics", [1]),
    "reference statistics of texts": put("reference_statistics", {"mean": "a"}),
    "no arrays": drop("arrays"),
    "arrays are a table": put("arrays", {}),
    "arrays are a number": put("arrays", 3),
    "an array is a number": put("arrays", 0, 3),
    "an array has no shape": drop("arrays", 0, "shape"),
    "an array of another name": put("arrays", 0, "name", ".velocity.nothing"),
    "an array of 10¹² numbers": put("arrays", 0, "shape", [10**12]),
    "an array of 10³⁰ numbers": put("arrays", 0, "shape", [10**15, 10**15]),
    "an array of negative shape": put("arrays", 0, "shape", [-1]),
    "an array of objects": put("arrays", 0, "dtype", "object"),
    "an array of texts": put("arrays", 0, "dtype", "<U9"),
    "a shape of fractions": put("arrays", 0, "shape", [2.0]),
    "a shape of texts": put("arrays", 0, "shape", ["2"]),
    "64 axes": put("arrays", 0, "shape", [1] * 64),
    "an array as whole numbers": put("arrays", 0, "dtype", "int32"),
    "history is a number": put("history", 3),
    "history of numbers": put("history", [1, 2]),
    "history with texts": put("history", [{"step": "a", "score": "b"}]),
    "the model is a list": put("model", [1]),
    "version is a number": put("version", 3),
    "the seed is a text": put("seed", "0"),
    "the seconds are a text": put("seconds", "long"),
    "the steps are a text": put("steps", "many"),
    "the validation score is a text": put("validation_score", "good"),
    "the settings are a list": put("settings", [1]),
}
NUMBERS: dict[str, Callable[[], bytes]] = {
    "NaN among the weights": lambda: _with_numbers(np.nan),
    "inf among the weights": lambda: _with_numbers(np.inf),
}
TEXTS: dict[str, Callable[[], bytes]] = {
    "empty": lambda: b"",
    "a newline": lambda: b"\n",
    "zeros": lambda: bytes(1000),
    "not UTF-8": lambda: sealed(b'{"arrays": [], "a": "\xff\xfe"}', b""),
    "nested 100,000 deep": lambda: sealed(b"[" * 100_000, b""),
    "a table nested 50,000 deep": lambda: sealed(b'{"a":' * 50_000 + b"1" + b"}" * 50_000, b""),
    "a number of 5,000 digits": lambda: sealed(b'{"arrays": [], "a": ' + b"9" * 5000 + b"}", b""),
    "NaN in the header": lambda: sealed(b'{"arrays": [], "a": NaN}', b""),
    "one key twice": lambda: sealed(b'{"arrays": [], "arrays": []}', b""),
    "a header of 64 MB": lambda: sealed(b'{"arrays": [], "a": "' + b"x" * 2**26 + b'"}', b""),
    "a million arrays": lambda: sealed(b'{"arrays": [' + b",".join([b"{}"] * 10**6) + b"]}", b""),
    "a first line without end": lambda: b"pfbr-operator 2 " + b"a" * 10**6,
    "a checkpoint": lambda: containers.to_bytes("checkpoint", {}, {}),
    "a newer format": lambda: WHOLE.replace(b"operator 2", b"operator 9", 1),
    "an older format": lambda: WHOLE.replace(b"operator 2", b"operator 1", 1),
    "a format of 5,000 digits": lambda: WHOLE.replace(b"operator 2", b"operator " + b"9" * 5000, 1),
    "a picture": lambda: b"\x89PNG\r\n\x1a\n" + bytes(99),
    "a pickle": lambda: b"\x80\x04\x95\x0e\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94",
    "a zip": lambda: b"PK\x03\x04" + bytes(99),
    "twice the file": lambda: WHOLE + WHOLE,
    "escape codes": lambda: b"pfbr-\x1b[31mred 2 x\n{}\n",
}
CHECKPOINT: dict[str, Callable[[dict], Any]] = {
    "step is a text": put("step", "7"),
    "step is negative": put("step", -1),
    "step is a fraction": put("step", 0.5),
    "no step": drop("step"),
    "step is null": put("step", None),
    "step of 10³⁰": put("step", 10**30),
    "seconds are a text": put("seconds", "1"),
    "no seconds": drop("seconds"),
    "seconds are negative": put("seconds", -1.0),
    "best_score is a text": put("best_score", "low"),
    "no best_score": drop("best_score"),
    "skipped is a list": put("skipped", []),
    "no skipped": drop("skipped"),
    "history is a number": put("history", 3),
    "history of numbers": put("history", [1, 2]),
    "history is a table": put("history", {}),
    "no history": drop("history"),
    "history without scores": put("history", [{}]),
    "of another model": put("model", "other.Model"),
    "of another seed": put("seed", [0, 2]),
    "of other settings": put("settings", {"steps": 4}),
    "of another architecture": put("architecture", {"name": "paper"}),
    "settings are a number": put("settings", 3),
    "no model": drop("model"),
}


def _with_numbers(value: float) -> bytes:
    header, arrays = parts()
    name = next(n for n, a in arrays.items() if a.dtype.kind == "f" and a.size)
    changed = arrays[name].copy()
    changed.flat[0] = value
    return containers.to_bytes("operator", header, {**arrays, name: changed})


def resumed(name: str, change: Callable[[dict], Any]) -> Case:
    def attempt(directory: Path) -> Callable[[], Any]:
        path = directory / "c.checkpoint"
        write_state(path, STATE, IDENTITY)
        header, arrays = containers.read(path, "checkpoint")
        change(header)
        containers.write(path, "checkpoint", header, arrays)
        return lambda: read_state(path, STATE, IDENTITY)

    return refused(GROUP, f"a checkpoint: {name}", attempt, "c.checkpoint")


def _cases() -> list[Case]:
    pretrained("mixture")  # is right: what is refused below is so for its change
    found = [loaded(f"cut short at {t} tenths", lambda t=t: WHOLE[: t * len(WHOLE) // 10]) for t in range(10)]
    rng = np.random.default_rng(20)
    bits = np.concatenate([rng.integers(0, 8 * 4000, 50), rng.integers(0, 8 * len(WHOLE), 50)])
    found += [loaded(f"bit {int(bit)} flipped", lambda bit=bit: flipped(int(bit))) for bit in bits]
    found += [loaded(name, lambda change=change: with_header(change)) for name, change in LIES.items()]
    found += [loaded(name, content) for name, content in {**TEXTS, **NUMBERS}.items()]
    found += [shown(name, content) for name, content in TEXTS.items() if name != "empty"]
    found += [
        shown(name, lambda c=LIES[name]: with_header(c))
        for name in ("the header is a list", "no arrays", "the architecture is a number", "no architecture")
    ]
    return found + [resumed(name, change) for name, change in CHECKPOINT.items()]


CASES = _cases()
