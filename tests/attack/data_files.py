"""Observations, records and manifests on disk that are damaged, cut short, or lie."""

import io
import json
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pfbr.cli.observations import read
from pfbr.cli.spec import resolve
from pfbr.io.records import MEASUREMENTS, SETTINGS, Measurement, Records, agree_on, read_arrays, write_arrays
from pfbr.models import GaussianMean
from pfbr.paper.digits.prepared import MANIFEST, open_stream
from tests.attack.case import Case, command_refused, refused

GROUP = "files: observations and records"
MODEL = GaussianMean(2)


def npy(array: Any, **options: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


def npy_claiming(header: str, body: bytes = bytes(64), version: tuple[int, int] = (1, 0)) -> bytes:
    text = header.encode("latin1")
    text += b" " * (63 - (10 + len(text)) % 64) + b"\n"
    return b"\x93NUMPY" + bytes(version) + struct.pack("<H", len(text) % 65536) + text + body


def npz(**arrays: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def zipped(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return buffer.getvalue()


GOOD = npy(np.zeros((5, 2)))
SYSTEM = npz(A=np.eye(2), B=np.eye(2))

NPY: dict[str, bytes] = {
    "empty": b"",
    "a text": b"hello",
    "a zip": SYSTEM,
    "a pickle": npy(np.array([None, {}], object), allow_pickle=True),
    "a bare pickle": b"\x80\x04N.",
    "claims 10¹² rows": npy_claiming("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 2), }"),
    "claims 10³⁰ rows": npy_claiming("{'descr': '<f8', 'fortran_order': False, 'shape': (10**30, 2), }"),
    "claims a few more rows": npy_claiming("{'descr': '<f8', 'fortran_order': False, 'shape': (9, 2), }"),
    "claims fewer rows": npy_claiming("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }"),
    "a negative shape": npy_claiming("{'descr': '<f8', 'fortran_order': False, 'shape': (-4, 2), }"),
    "a shape of texts": npy_claiming("{'descr': '<f8', 'fortran_order': False, 'shape': ('4', 2), }"),
    "a shape that is a number": npy_claiming("{'descr': '<f8', 'fortran_order': False, 'shape': 8, }"),
    "a type that is none": npy_claiming("{'descr': '<q99', 'fortran_order': False, 'shape': (4, 2), }"),
    "a header that is code": npy_claiming("__import__('os').system('touch hacked')"),
    "a header that is deep": npy_claiming("(" * 5000),
    "a header that is a list": npy_claiming("[1, 2]"),
    "a header that is long": npy_claiming("{'descr': '<f8', 'fortran_order': False, 'shape': (4, 2), }" + " " * 60000),
    "another version": npy_claiming("{'descr': '<f8', 'fortran_order': False, 'shape': (4, 2), }", version=(9, 9)),
    "objects in the header": npy_claiming("{'descr': '|O', 'fortran_order': False, 'shape': (4, 2), }"),
    "texts": npy(np.array([["a", "b"]])),
    "complex": npy(np.zeros((4, 2), complex)),
    "dates": npy(np.array([["2024-01-01"] * 2], "datetime64[D]")),
    "structured": npy(np.zeros(4, [("a", "f8"), ("b", "f8")])),
    "inf": npy(np.full((4, 2), np.inf)),
    "another width": npy(np.zeros((4, 3))),
    "no rows": npy(np.zeros((0, 2))),
    "a number": npy(np.asarray(3.0)),
    "four axes": npy(np.zeros((1, 1, 4, 2))),
}
CSV: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "no observations"),
    "a header alone": (b"a,b\n", "no observations"),
    "blank lines": (b"\n\n\n", "no observations"),
    "a text": (b"1,2\n3,x\n", "line 2, column 2.*'x'"),
    "a question mark": (b"1,2\n?,4\n", "line 2, column 1.*'\\?'"),
    "a dash": (b"1,2\n-,4\n", "line 2"),
    "1_000": (b"1,2\n1_000,4\n", "1_000"),
    "hexadecimal": (b"1,2\n0x1F,4\n", "0x1F"),
    "inf": (b"1,2\ninf,4\n", "inf"),
    "1e999": (b"1,2\n1e999,4\n", "large"),
    "a comma for a point": (b"1;2\n3,5;4\n", "line"),
    "semicolons": (b"1;2\n3;4\n", "line 2"),
    "other digits": ("1,2\n١,4\n".encode(), "line 2"),
    "a percentage": (b"1,2\n5%,4\n", "5%"),
    "a currency": ("1,2\n5€,4\n".encode(), "5€"),
    "a truth": (b"1,2\ntrue,4\n", "true"),
    "a date": (b"1,2\n2024-01-01,4\n", "2024"),
    "one cell too few": (b"1,2\n3\n", "line 2 has 1 columns"),
    "one cell too many": (b"1,2\n3,4,5\n", "line 2 has 3 columns"),
    "three columns": (b"1,2,3\n", r"\(1, 3\)"),
    "not UTF-8": (b"1,2\n\xff\xfe,4\n", "line 2"),
    "UTF-16": ("1,2\n3,4\n".encode("utf-16"), "line 1|column|UTF|NUL|observations"),
    "a NUL": (b"1,2\n3,\x004\n", "line 2"),
    "an open quotation": (b'1,2\n"3,4\n5,6\n', "line"),
    "a cell of 200,000 characters": (b"1,2\n" + b"9" * 200_000 + b",4\n", "line 2"),
    "a cell of 5,000 digits": (b"1,2\n" + b"9" * 5000 + b",4\n", "line 2.*large"),
    "a line of 10⁶ cells": (b"1,2\n" + b"1," * 10**6 + b"\n", "line 2"),
    "an escape code": (b"1,2\n\x1b[31m,4\n", "line 2"),
    "a formula": (b"1,2\n=1+1,4\n", "=1\\+1"),
    "a fraction": (b"1,2\n1/2,4\n", "1/2"),
    "two numbers in a cell": (b"1,2\n1 2,4\n", "1 2"),
    "beyond float32": (b"1,2\n1e300,4\n", "."),
}
JSONL: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "no observations"),
    "not JSON": (b"[1, 2]\n{oops\n", "line 2"),
    "a text": (b'[1, 2]\n"hot"\n', "line 2"),
    "a truth": (b"[1, 2]\ntrue\n", "line 2"),
    "a ragged list": (b"[[1], [1, 2]]\n", "line 1.*ragged"),
    "an empty list": (b"[]\n", "line 1"),
    "another shape": (b"[1, 2, 3]\n", r"line 1.*\(3,\)"),
    "inf": (b"[1, Infinity]\n", "line 1.*Infinity"),
    "1e999": (b"[1, 1e999]\n", "line 1"),
    "5,000 digits": (b"[1, " + b"9" * 5000 + b"]\n", "line 1"),
    "deep": (b"[" * 100_000 + b"\n", "line 1"),
    "deep and closed": (b"[" * 50_000 + b"]" * 50_000 + b"\n", "line 1"),
    "not UTF-8": (b"[1, 2]\n[\xff, 1]\n", "line 2"),
    "an object without observation": (b'{"y": [1, 2]}\n', "line 1.*observation"),
    "a misspelt key": (b'{"observation": [1, 2], "tmie": 3}\n', "time"),
    "time is a list": (b'{"observation": [1, 2], "time": [1]}\n', "time"),
    "time is text": (b'{"observation": [1, 2], "time": "noon"}\n', "time"),
    "time comes and goes": (b'{"observation": [1, 2], "time": 1}\n[1, 2]\n', "line 2"),
    "a retraction": (b'[1, 2]\n{"retract": null}\n', "line 2"),
    "inputs of texts": (b'{"observation": [1, 2], "inputs": ["a"]}\n', "inputs"),
    "two values on a line": (b"[1, 2] [3, 4]\n", "line 1"),
    "a line of 10 MB": (b"[" + b"1," * (5 * 10**6) + b"1]\n", r"line 1"),
    "a cell of null": (b'[1, {"a": 1}]\n', "line 1"),
    "one key twice": (b'{"observation": [1, 2], "observation": [3, 4]}\n', "twice|observation"),
    "inputs of other shapes": (
        b'{"observation": [1, 2], "inputs": [1]}\n{"observation": [1, 2], "inputs": [1, 2]}\n',
        "inputs",
    ),
}
LINES: dict[str, bytes] = {
    "not JSON": b"{oops\n",
    "a list": b"[1]\n",
    "a number": b"3\n",
    "null": b"null\n",
    "a text": b'"x"\n',
    "an empty table": b"{}\n",
    "an unknown field": b'{"method": "a", "metric": "b", "stage": 1, "value": 2.0, "colour": 3}\n',
    "a field missing": b'{"method": "a"}\n',
    "the method is a number": b'{"method": 3, "metric": "b", "stage": 1, "value": 2.0}\n',
    "the metric is a list": b'{"method": "a", "metric": [], "stage": 1, "value": 2.0}\n',
    "the stage is a text": b'{"method": "a", "metric": "b", "stage": "1", "value": 2.0}\n',
    "the stage is a fraction": b'{"method": "a", "metric": "b", "stage": 1.5, "value": 2.0}\n',
    "the stage is a list": b'{"method": "a", "metric": "b", "stage": [1], "value": 2.0}\n',
    "the value is a list": b'{"method": "a", "metric": "b", "stage": 1, "value": [2.0]}\n',
    "the value is a text": b'{"method": "a", "metric": "b", "stage": 1, "value": "high"}\n',
    "the value is a table": b'{"method": "a", "metric": "b", "stage": 1, "value": {}}\n',
    "the value is a truth": b'{"method": "a", "metric": "b", "stage": 1, "value": true}\n',
    "the error is a list": b'{"method": "a", "metric": "b", "stage": 1, "value": 1.0, "error": [1]}\n',
    "the seed is a text": b'{"method": "a", "metric": "b", "stage": 1, "value": 1.0, "seed": "x"}\n',
    "not UTF-8": b'{"method": "\xff", "metric": "b", "stage": 1, "value": 1.0}\n',
    "deep": b"[" * 100_000 + b"\n",
    "5,000 digits": b'{"method": "a", "metric": "b", "stage": ' + b"9" * 5000 + b', "value": 1.0}\n',
    "a NUL": b'{"method": "a", \x00"metric": "b", "stage": 1, "value": 1.0}\n',
    "NaN": b'{"method": "a", "metric": "b", "stage": NaN, "value": 1.0}\n',
}
SETTINGS_TEXTS: dict[str, bytes] = {
    "empty": b"",
    "not JSON": b"{oops",
    "a list": b"[1, 2]",
    "a number": b"3",
    "null": b"null",
    "a text": b'"ab"',
    "pairs": b'[["a", 1]]',
    "not UTF-8": b'{"a": "\xff"}',
    "deep": b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    "5,000 digits": b'{"a": ' + b"9" * 5000 + b"}",
    "two values": b"{} {}",
    "a NUL": b'{"a": "\x00"}',
    "NaN": b'{"a": NaN}',
}
MANIFESTS: dict[str, bytes] = {
    "no digits": b"{}",
    "digits a number": b'{"digits": 3, "variants": 2}',
    "variants a text": b'{"digits": "x", "variants": "2"}',
    "variants 10¹²": b'{"digits": "FINGERPRINT", "variants": 1000000000000}',
    "variants negative": b'{"digits": "FINGERPRINT", "variants": -2}',
    "variants a fraction": b'{"digits": "FINGERPRINT", "variants": 2.5}',
    "variants missing": b'{"digits": "FINGERPRINT"}',
    "variants null": b'{"digits": "FINGERPRINT", "variants": null}',
    "variants a text, the digits right": b'{"digits": "FINGERPRINT", "variants": "2"}',
}
SYSTEMS: dict[str, bytes] = {
    "empty": b"",
    "a text": b"hello",
    "no zip": b"PK\x03\x04" + bytes(50),
    "an .npy": GOOD,
    "no B": npz(A=np.eye(2)),
    "A of texts": npz(A=np.array([["a"]]), B=np.eye(2)),
    "A of objects": zipped(A=NPY["a pickle"], B=npy(np.eye(2))),
    "A complex": npz(A=np.eye(2) * 1j, B=np.eye(2)),
    "A a vector": npz(A=np.ones(2), B=np.eye(2)),
    "A not square": npz(A=np.ones((2, 3)), B=np.eye(2)),
    "B of another width": npz(A=np.eye(2), B=np.eye(3)),
    "A NaN": npz(A=np.full((2, 2), np.nan), B=np.eye(2)),
    "A inf": npz(A=np.full((2, 2), np.inf), B=np.eye(2)),
    "A empty": npz(A=np.zeros((0, 0)), B=np.zeros((0, 0))),
    "A claims 10¹²": zipped(A=NPY["claims 10¹² rows"], B=npy(np.eye(2))),
    "A is code": zipped(A=NPY["a header that is code"], B=npy(np.eye(2))),
    "transition_std a matrix": npz(A=np.eye(2), B=np.eye(2), transition_std=np.eye(2)),
    "transition_std negative": npz(A=np.eye(2), B=np.eye(2), transition_std=-1.0),
    "transition_std a text": npz(A=np.eye(2), B=np.eye(2), transition_std="x"),
    "prior_std NaN": npz(A=np.eye(2), B=np.eye(2), prior_std=np.nan),
    **{f"cut short at {t} tenths": SYSTEM[: t * len(SYSTEM) // 10] for t in range(1, 10)},
}


def observations(suffix: str, name: str, content: bytes, says: str) -> Case:
    def attempt(directory: Path) -> Callable[[], Any]:
        path = directory / f"bad{suffix}"
        path.write_bytes(content)
        return lambda: read(path, MODEL)

    return refused(GROUP, f"{suffix}: {name}", attempt, says)


def measured(name: str, content: bytes) -> Case:
    def attempt(directory: Path) -> Callable[[], Any]:
        Records(directory, {"a": 1}).add([Measurement("m", "score", 1, 2.0)])
        with (directory / MEASUREMENTS).open("ab") as file:
            file.write(content)
        return lambda: Records(directory).measurements()

    return refused(GROUP, f"a measurement: {name}", attempt, MEASUREMENTS)


def settled(name: str, content: bytes) -> list[Case]:
    def put(directory: Path) -> Path:
        (directory / SETTINGS).write_bytes(content)
        return directory

    def reading(directory: Path) -> Callable[[], Any]:
        put(directory)
        return lambda: Records(directory).settings["a"]

    def agreeing(directory: Path) -> Callable[[], Any]:
        put(directory)
        return lambda: agree_on(directory / SETTINGS, {"a": 1}, "run")

    cases = [refused(GROUP, f"settings, gone on with: {name}", agreeing, SETTINGS)]
    return cases if name == "NaN" else [refused(GROUP, f"settings: {name}", reading, SETTINGS), *cases]


def reported(name: str, make: Callable[[Path], None], says: str = "records|settings|damaged|scores|demo.json") -> Case:
    def words(directory: Path) -> list[Any]:
        (directory / "run").mkdir()
        make(directory / "run")
        return ["report", directory / "run"]

    return command_refused(GROUP, f"pfbr report: {name}", words, says)


def stored(name: str, damage: Callable[[Path], None]) -> Case:
    def attempt(directory: Path) -> Callable[[], Any]:
        write_arrays(directory, "demo", {"a": 1}, {"x": np.arange(100.0)})
        damage(directory)
        return lambda: read_arrays(directory, "demo", "pfbr demo")

    return refused(GROUP, f"arrays of a record: {name}", attempt, "demo|records")


def manifest(name: str, content: bytes) -> Case:
    def attempt(directory: Path) -> Callable[[], Any]:
        from pfbr.paper.digits.images import load_digits
        from pfbr.paper.digits.prepared import _fingerprint

        mark = json.dumps(_fingerprint(load_digits("train"))).encode()
        (directory / MANIFEST).write_bytes(content.replace(b'"FINGERPRINT"', mark))
        return lambda: open_stream(directory)

    return refused(GROUP, f"a manifest: {name}", attempt, r"stream")


def system(name: str, content: bytes) -> Case:
    def attempt(directory: Path) -> Callable[[], Any]:
        (directory / "s.npz").write_bytes(content)
        return lambda: resolve(f"linear-dynamics:system={directory / 's.npz'}")

    return refused(GROUP, f"a system: {name}", attempt, r"s\.npz")


def _record(settings: Any, arrays: dict[str, Any], stem: str = "demo") -> Callable[[Path], None]:
    return lambda d: write_arrays(d, stem, settings, arrays)


def _put(**files: bytes) -> Callable[[Path], None]:
    def make(directory: Path) -> None:
        for name, content in files.items():
            (directory / name.replace("_", ".")).write_bytes(content)

    return make


def _cases() -> list[Case]:
    line = b'{"method": "a", "metric": "b", "stage": 1, "value": 2.0}\n'
    found = [observations(".npy", name, content, "bad.npy") for name, content in NPY.items()]
    found += [
        observations(".npy", f"cut short at {t} tenths", GOOD[: t * len(GOOD) // 10], "bad.npy") for t in range(1, 10)
    ]
    found += [observations(".csv", n, c, s) for n, (c, s) in CSV.items() if s != "."]
    found += [observations(".jsonl", n, c, s) for n, (c, s) in JSONL.items()]
    found += [measured(name, content) for name, content in LINES.items()]
    found += [case for name, content in SETTINGS_TEXTS.items() for case in settled(name, content)]
    found += [manifest(name, content) for name, content in MANIFESTS.items()]
    found += [manifest(f"settings {name}", content) for name, content in SETTINGS_TEXTS.items() if name != "NaN"]
    found += [system(name, content) for name, content in SYSTEMS.items()]
    found += [stored(f"cut short at {t} tenths", lambda d, t=t: _cut(d / "demo.npz", t)) for t in range(10)]
    found += [
        stored("settings are a list", lambda d: (d / "demo.json").write_bytes(b"[]") and None),
        stored("settings are deep", lambda d: (d / "demo.json").write_bytes(SETTINGS_TEXTS["deep"]) and None),
        stored("settings are not UTF-8", lambda d: (d / "demo.json").write_bytes(b'{"a": "\xff"}') and None),
        stored(
            "an array claims 10¹²", lambda d: (d / "demo.npz").write_bytes(zipped(x=NPY["claims 10¹² rows"])) and None
        ),
        stored("an array of objects", lambda d: (d / "demo.npz").write_bytes(zipped(x=NPY["a pickle"])) and None),
        stored("a zip bomb", lambda d: (d / "demo.npz").write_bytes(_bomb()) and None),
        reported("an empty directory", lambda d: None),
        reported("a demonstration of nothing", _record({}, {})),
        reported(
            "a demonstration without scores",
            _record({"num_observations": 3, "num_particles": 4}, {"observations": np.zeros(3)}),
        ),
        reported("a demonstration with texts", _record({"num_observations": "three"}, {"x": np.zeros(3)})),
        reported("a demonstration that is a list", _put(demo_json=b"[]", demo_npz=npz(x=np.zeros(2)))),
        reported("a calibration of nothing", _record({}, {}, "calibration")),
        reported(
            "a calibration with texts",
            _record({"streams": "many", "length": None}, {"ranks": np.zeros(3)}, "calibration"),
        ),
        reported("a comparison of nothing", _put(settings_json=b"{}", measurements_jsonl=b"")),
        reported("a comparison without settings", _put(measurements_jsonl=line)),
        reported("a comparison with bad lines", _put(settings_json=b"{}", measurements_jsonl=b"[1]\n"), "measurement"),
        reported(
            "an experiment that is none",
            _put(settings_json=b'{"experiment": "cold fusion", "settings": {}}', measurements_jsonl=b""),
            "experiment|records",
        ),
        reported(
            "an experiment that is a number",
            _put(settings_json=b'{"experiment": 3, "settings": {}}', measurements_jsonl=b""),
            "experiment|records",
        ),
        reported(
            "an experiment that is a list",
            _put(settings_json=b'{"experiment": [3], "settings": {}}', measurements_jsonl=b""),
            "experiment|records",
        ),
        reported(
            "an experiment without settings", _put(settings_json=b'{"experiment": "lds"}', measurements_jsonl=b"")
        ),
        reported(
            "an experiment with no records",
            _put(settings_json=b'{"experiment": "lds", "settings": {}, "seed": 0}', measurements_jsonl=b""),
        ),
        reported(
            "an experiment, settings not UTF-8", _put(settings_json=b'{"experiment": "\xff"}', measurements_jsonl=b"")
        ),
    ]
    return found


def _cut(path: Path, tenths: int) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: tenths * len(content) // 10])


def _bomb() -> bytes:
    """A megabyte that claims to be sixteen gigabytes."""
    one = (
        b"\x93NUMPY\x01\x00v\x00"
        + b"{'descr': '|u1', 'fortran_order': False, 'shape': (17179869184,), }".ljust(117)
        + b"\n"
    )
    content = bytearray(zipped(x=one + bytes(10**6)))
    size = struct.pack("<I", 10**6 + len(one))
    return bytes(content).replace(size, struct.pack("<I", 2**32 - 2))


CASES = _cases()
