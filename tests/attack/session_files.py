"""Saved sessions, panels and live streams that are damaged, cut short, or lie about themselves with a right checksum."""

import copy
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import pfbr
from pfbr.io import containers
from pfbr.models import LinearDynamics
from tests.attack.case import Case, refused
from tests.attack.operator_files import drop, put

GROUP = "files: sessions and panels"
MODEL = LinearDynamics([[0.9, 0.2], [-0.1, 0.8]], [[1.0, 0.0], [0.3, 0.7]])
STREAM = np.array([[0.4, -1.2], [0.9, 0.1], [-0.3, 0.8], [1.4, -0.2]], np.float32)


@functools.cache
def whole(kind: str) -> bytes:
    """A file that is right."""
    settings: dict[str, Any] = {"method": "smc", "num_particles": 8}
    if kind == "panel":
        panel = pfbr.Panel(MODEL, **settings)
        for observation in STREAM:
            panel.update(np.stack([observation, -observation]), ["a", "b"])
        return panel.to_bytes()
    session = pfbr.Session(MODEL, undo=2, **settings)
    for observation in STREAM:
        session.update(observation)
    return session.to_bytes()


def restore(kind: str) -> Callable[[Path], Any]:
    cls = pfbr.Panel if kind == "panel" else pfbr.Session
    return lambda path: cls.restore(path, MODEL)


def restored(kind: str, name: str, content: Callable[[], bytes]) -> Case:
    def attempt(directory: Path) -> Callable[[], Any]:
        path = directory / f"bad.{kind}"
        path.write_bytes(content())
        return lambda: restore(kind)(path)

    return refused(GROUP, f"a {kind}: {name}", attempt, f"bad.{kind}")


def changed(kind: str, change: Callable[[dict[str, Any], dict[str, np.ndarray]], None]) -> bytes:
    """The file with a change of its header or its arrays, and a right checksum."""
    header, arrays = containers.from_bytes(whole(kind), kind)
    header = copy.deepcopy(header)
    change(header, arrays)
    return containers.to_bytes(kind, header, arrays)


def flipped(kind: str, share: float) -> bytes:
    content = bytearray(whole(kind))
    bit = int(share * 8 * len(content))
    content[bit // 8] ^= 1 << (bit % 8)
    return bytes(content)


def said(change: Callable[[dict], Any]) -> Callable[[dict, dict], None]:
    """A lie in the header."""
    return lambda header, arrays: change(header)


def held(part: str, value: Any) -> Callable[[dict, dict], None]:
    """Another number in the first array whose name holds `part`."""

    def change(header: dict, arrays: dict[str, np.ndarray]) -> None:
        name = next(n for n, a in arrays.items() if part in n and a.size)
        array = arrays[name].copy()
        array.flat[0] = value
        arrays[name] = array

    return change


def without(part: str) -> Callable[[dict, dict], None]:
    def change(header: dict, arrays: dict[str, np.ndarray]) -> None:
        del arrays[next(n for n in arrays if part in n)]

    return change


def reshaped(part: str) -> Callable[[dict, dict], None]:
    def change(header: dict, arrays: dict[str, np.ndarray]) -> None:
        name = next(n for n, a in arrays.items() if part in n and a.size > 1)
        arrays[name] = arrays[name].reshape(-1)[1:]

    return change


BOTH: dict[str, Callable[[dict, dict], None]] = {
    "no layout": said(drop("layout")),
    "another layout": said(put("layout", 99)),
    "the layout is a text": said(put("layout", "1")),
    "the layout is a list": said(put("layout", [1])),
    "another precision": said(put("precision", "float64")),
    "no precision": said(drop("precision")),
    "the precision is a table": said(put("precision", {})),
    "no method": said(drop("method")),
    "the method is a text": said(put("method", "smc")),
    "the method is a number": said(put("method", 3)),
    "the method is null": said(put("method", None)),
    "the method is a list": said(put("method", [1])),
    "a kind that is none": said(put("method", "kind", "os.system")),
    "a kind that is a list": said(put("method", "kind", ["a"])),
    "a kind that is no method": said(put("method", "kind", "ReferenceStatistics")),
    "a setting that is none": said(put("method", "settings", {"wings": 2})),
    "settings are a list": said(put("method", "settings", [])),
    "no key": said(drop("key")),
    "a generator that is none": said(put("key", "dice")),
    "the generator is a number": said(put("key", 3)),
    "the generator is a list": said(put("key", ["threefry2x32"])),
    "no numbers of the key": without("key"),
    "a key of another shape": reshaped("key"),
    "no fingerprint": said(drop("fingerprint")),
    "the fingerprint is a number": said(put("fingerprint", 3)),
    "the fingerprint is empty": said(put("fingerprint", {})),
    "of another model": held("fingerprint.points", 9.0),
    "no example": said(drop("example")),
    "the example is a number": said(put("example", 3)),
    "the example is empty": said(put("example", {})),
    "the example is a text": said(put("example", "row")),
    "no start": said(drop("start")),
    "the start is a text": said(put("start", "yesterday")),
    "the start is a date that is none": said(put("start", {"date": "yesterday"})),
    "the start is a list": said(put("start", [0])),
    "a unit that is none": said(put("time_unit", "moons")),
    "the unit is a number": said(put("time_unit", 3)),
    "no unit": said(drop("time_unit")),
    "particles are not finite": held(".own.points", np.nan),
    "an array less": without(".own.points"),
    "an array of another shape": reshaped(".own.points"),
    "evidence that is none": held("log_evidence", np.nan),
    "a time that is none": held("now", np.inf),
}
OF_A_SESSION: dict[str, Callable[[dict, dict], None]] = {
    "particles: a text": said(put("num_particles", "many")),
    "particles: 10¹²": said(put("num_particles", 10**12)),
    "particles: none": said(put("num_particles", 0)),
    "particles: fewer than none": said(put("num_particles", -8)),
    "particles: a fraction": said(put("num_particles", 7.5)),
    "particles: other than it holds": said(put("num_particles", 9)),
    "particles: null": said(put("num_particles", None)),
    "undo: a text": said(put("undo", "two")),
    "undo: fewer than none": said(put("undo", -1)),
    "undo: null": said(put("undo", None)),
    "undo: a fraction": said(put("undo", 1.5)),
    "no undo": said(drop("undo")),
    "stages: a number": said(put("stages", 3)),
    "stages: texts": said(put("stages", ["a", "b", "c"])),
    "stages: one too few": said(put("stages", [3, 4])),
    "stages: none": said(put("stages", [])),
    "stages: fewer than none": said(put("stages", [-3, -2, -1])),
    "stages: not in order": said(put("stages", [9, 3, 4])),
    "reports: a number": said(put("reports", 3)),
    "reports: of numbers": said(put("reports", [1, 2])),
    "reports: one too few": said(put("reports", [None])),
    "reports: of nothing": said(put("reports", [{}, {}])),
    "reports: at no time": said(put("reports", 0, "at", "noon")),
    "scores: a text": said(put("scores", "yes")),
    "scores: null": said(put("scores", None)),
    "no scores": said(drop("scores")),
    "weights that are not numbers": held("log_weights", np.nan),
    "weights beyond all numbers": held("log_weights", np.inf),
}
OF_A_PANEL: dict[str, Callable[[dict, dict], None]] = {
    "no counts": said(drop("counts")),
    "counts: a number": said(put("counts", 3)),
    "counts: empty": said(put("counts", {})),
    "particles: a text": said(put("counts", "num_particles", "many")),
    "particles: 10¹²": said(put("counts", "num_particles", 10**12)),
    "particles: none": said(put("counts", "num_particles", 0)),
    "particles: a fraction": said(put("counts", "num_particles", 7.5)),
    "particles: other than it holds": said(put("counts", "num_particles", 9)),
    "capacity: a text": said(put("counts", "capacity", "much")),
    "capacity: 10¹⁵": said(put("counts", "capacity", 10**15)),
    "capacity: fewer than none": said(put("counts", "capacity", -4)),
    "reports: a text": said(put("counts", "num_reports", "many")),
    "reports: fewer than none": said(put("counts", "num_reports", -1)),
    "streams: a number": said(put("streams", 3)),
    "streams: one too few": said(put("streams", {"list": ["a"]})),
    "streams: one twice": said(put("streams", {"list": ["a", "a"]})),
    "streams: a list among them": said(put("streams", {"list": ["a", {"list": []}]})),
    "no streams": said(drop("streams")),
    "a store that is none": held("standing.store", 99),
    "a number that is none": held("standing.number", -7),
    "a stage that is none": held("standing.stage", -7),
    "no stages": without("standing.stage"),
    "from_first: a text": said(put("from_first", "yes")),
}


def _cases() -> list[Case]:
    found: list[Case] = []
    for kind, own in (("session", OF_A_SESSION), ("panel", OF_A_PANEL)):
        tenths = {f"cut short at {t} tenths": t for t in range(10)}
        found += [
            restored(kind, name, lambda k=kind, t=t: whole(k)[: t * len(whole(k)) // 10]) for name, t in tenths.items()
        ]
        shares = np.random.default_rng(21).uniform(0, 1, 20)
        found += [
            restored(kind, f"a bit flipped at {share:.4f}", lambda k=kind, s=share: flipped(k, s)) for share in shares
        ]
        found += [
            restored(kind, name, lambda k=kind, c=change: changed(k, c)) for name, change in {**BOTH, **own}.items()
        ]
        other = "panel" if kind == "session" else "session"
        found.append(restored(kind, f"a {other}", lambda o=other: whole(o)))
        found.append(restored(kind, "an operator", lambda: containers.to_bytes("operator", {}, {})))
        found.append(
            restored(kind, "a pickle", lambda: b"\x80\x04\x95\x0e\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94")
        )
    return found


CASES = _cases()
