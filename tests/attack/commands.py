"""Command lines that cannot work: one line, status 2, nothing written; and model files that misbehave."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.attack.case import Case, command_refused
from tests.cli.commands import pfbr_command, written

GROUP = "command line"
CSV = "0.1,0.2\n0.3,0.1\n"
SPEC = "gaussian-mean:dim=2"
GOOD_MODEL = """
import jax
from jax import numpy as jnp
import pfbr
class Mine(pfbr.Model):
    dim: int = 2
    def sample_prior(self, key): return jax.random.normal(key, (2,))
    def log_prior(self, x): return -0.5 * jnp.sum(x**2) - jnp.log(2 * jnp.pi)
    def log_likelihood(self, x, observation): return -0.5 * jnp.sum((observation - x) ** 2)
    def sample_observation(self, key, x): return x + jax.random.normal(key, (2,))
model = Mine()
"""


def on_csv(*words: Any) -> Callable[[Path], list[Any]]:
    """`pfbr infer` on a csv with an output beside it; `SPEC` first in `words` where another is wanted."""

    def line(directory: Path) -> list[Any]:
        stream = written(directory / "s.csv", CSV)
        (directory / "is.npz").mkdir()
        place = {"OUT": directory / "out.npz", "CSV": stream, "DIR": directory}
        return [place.get(word, word) for word in words]

    return line


def infer(name: str, *options: Any, says: str, spec: str = SPEC) -> Case:
    return command_refused(GROUP, name, on_csv("infer", spec, "CSV", "--out", "OUT", *options), says)


def with_model(name: str, code: str, says: str, *, command: str = "infer", attribute: str = "model") -> Case:
    def words(directory: Path) -> list[Any]:
        path = written(directory / "m.py", code)
        spec = f"{path}:{attribute}"
        stream = written(directory / "s.csv", CSV)
        out = ["--out", directory / ("out.npz" if command == "infer" else "out.pfbr" if command == "train" else "out")]
        return (
            [command, spec]
            + ([stream] if command in ("infer", "compare") else [])
            + (out if command != "check" else [])
        )

    return command_refused(GROUP, f"{name} ({command})", words, says)


SPECS: dict[str, tuple[str, str]] = {
    "a model that is none": ("gausian-mean", "gaussian-mean"),
    "an empty spec": ("", "built-in"),
    "a setting that is none": ("gaussian-mean:dmi=2", "dim"),
    "a setting without value": ("gaussian-mean:dim", "key=value"),
    "dim a text": ("gaussian-mean:dim=two", "whole number"),
    "dim negative": ("gaussian-mean:dim=-2", "at least 1"),
    "dim of 10¹²": ("gaussian-mean:dim=1000000000000", "memory|[GTP]B"),
    "dim of 5,000 digits": ("gaussian-mean:dim=" + "9" * 5000, "dim"),
    "dim with underscores": ("gaussian-mean:dim=1_0", "whole number"),
    "std zero": ("gaussian-mean:prior_std=0", "positive"),
    "std NaN": ("gaussian-mean:prior_std=nan", "positive"),
    "std inf": ("gaussian-mean:prior_std=inf", "positive"),
    "a setting twice": ("gaussian-mean:dim=2,dim=3", "twice"),
    "a file that is not there": ("nowhere.py:model", "no file"),
    "a file without attribute": ("nowhere.py", "nowhere.py:NAME"),
    "a directory": ("/:model", "built-in|file"),
    "a seed negative": ("linear-dynamics:seed=-1", "seed"),
    "a system that is not there": ("linear-dynamics:system=no.npz", "no.npz"),
    "a system that is a directory": ("linear-dynamics:system=/", "'/'"),
    "a NUL": ("gaussian\0mean", "built-in"),
    "a long name": ("g" * 10_000, "built-in"),
}
OPTIONS: dict[str, tuple[tuple[Any, ...], str]] = {
    "particles a text": (("--particles", "many"), "--particles"),
    "particles one": (("--particles", 1), "--particles"),
    "particles negative": (("--particles", -5), "--particles"),
    "particles of 10¹²": (("--particles", 10**12), "memory|[GTP]B"),
    "particles of 5,000 digits": (("--particles", "9" * 5000), "--particles"),
    "particles a fraction": (("--particles", 2.5), "--particles"),
    "seed a text": (("--seed", "x"), "--seed"),
    "seed negative": (("--seed", -1), "--seed"),
    "seed of 2⁶⁴": (("--seed", 2**64), "seed"),
    "history negative": (("--history", -1), "--history"),
    "history a text": (("--history", "al"), "--history|history"),
    "a method that is none": (("--method", "kalman"), "kalman"),
    "a method file that is none": (("--method", "no.pfbr"), "no.pfbr"),
    "a method that is a directory": (("--method", "/"), "'?/'?"),
    "a start that is none": (("--start", "soon"), "--start"),
    "a start that is NaN": (("--start", "nan"), "--start"),
    "a time unit that is none": (("--time-unit", "year"), "time_unit|--time-unit"),
    "a column that is none": (("--time", "when"), "when"),
    "inputs that are none": (("--inputs", "wind"), "wind"),
    "an observation that is none": (("--observation", "speed"), "speed"),
    "a column twice": (("--time", "a", "--inputs", "a"), "twice"),
    "an option that is none": (("--particels", 8), "--particels"),
    "an option without value": (("--seed",), "--seed"),
}
COMMANDS: dict[str, tuple[tuple[Any, ...], str]] = {
    "a command that is none": (("infre",), "infre"),
    "infer without observations": (("infer", SPEC), "OBSERVATIONS"),
    "infer without --out": (("infer", SPEC, "CSV"), "--out"),
    "a file of another kind": (("infer", SPEC, "s.xlsx", "--out", "OUT"), "s.xlsx"),
    "observations that are not there": (("infer", SPEC, "no.csv", "--out", "OUT"), "no.csv"),
    "observations that are a directory": (("infer", SPEC, "DIR", "--out", "OUT"), "."),
    "an output of another kind": (("infer", SPEC, "CSV", "--out", "out.txt"), "npz"),
    "an output nowhere": (("infer", SPEC, "CSV", "--out", "no/where/out.npz"), "directory"),
    "an output that is a directory": (("infer", SPEC, "CSV", "--out", "DIR/is.npz"), "directory"),
    "an output with a long name": (("infer", SPEC, "CSV", "--out", "n" * 300 + ".npz"), "long"),
    "an output with a NUL": (("infer", SPEC, "CSV", "--out", "a\0b.npz"), "null|NUL|\\\\x00|name"),
    "a page for an output": (("infer", SPEC, "CSV", "--out", ""), "out"),
    "two models": (("infer", SPEC, SPEC, "CSV", "--out", "OUT"), "."),
    "train without --out": (("train", SPEC), "--out"),
    "train into another kind": (("train", SPEC, "--out", "a.npz"), "pfbr"),
    "train minutes negative": (("train", SPEC, "--out", "DIR/a.pfbr", "--minutes", -1), "minutes"),
    "train minutes NaN": (("train", SPEC, "--out", "DIR/a.pfbr", "--minutes", "nan"), "minutes"),
    "train minutes inf": (("train", SPEC, "--out", "DIR/a.pfbr", "--minutes", "inf"), "minutes"),
    "train steps zero": (("train", SPEC, "--out", "DIR/a.pfbr", "--steps", 0), "steps"),
    "train steps a fraction": (("train", SPEC, "--out", "DIR/a.pfbr", "--steps", 1.5), "steps"),
    "train particles one": (("train", SPEC, "--out", "DIR/a.pfbr", "--particles", 1), "particles"),
    "train particles 10¹²": (("train", SPEC, "--out", "DIR/a.pfbr", "--particles", 10**12), "memory|[GTP]B"),
    "train an operator that is none": (("train", SPEC, "--out", "DIR/a.pfbr", "--operator", "best"), "operator"),
    "train resume without checkpoint": (("train", SPEC, "--out", "DIR/a.pfbr", "--resume"), "checkpoint|no file"),
    "train seed 2⁶⁴": (("train", SPEC, "--out", "DIR/a.pfbr", "--seed", 2**64), "seed"),
    "train what has nothing to learn": (
        ("train", SPEC, "--out", "DIR/a.pfbr", "--operator", "gaussian"),
        "nothing to learn",
    ),
    "compare without --out": (("compare", SPEC, "CSV"), "--out"),
    "compare a method that is none": (("compare", SPEC, "CSV", "--methods", "kalman", "--out", "DIR/out"), "kalman"),
    "compare a truth that is none": (
        ("compare", SPEC, "CSV", "--truth", "grid", "--methods", "prior", "--out", "DIR/out"),
        "truth",
    ),
    "compare into a file": (("compare", SPEC, "CSV", "--methods", "prior", "--out", "CSV"), "file|directory"),
    "compare minutes NaN": (
        ("compare", SPEC, "CSV", "--methods", "prior", "--minutes", "nan", "--out", "DIR/out"),
        "minutes",
    ),
    "compare no file": (("compare", SPEC, "--out", "DIR/out"), "OBSERVATIONS"),
    "compare particles 10¹²": (
        ("compare", SPEC, "CSV", "--methods", "prior", "--particles", 10**12, "--out", "DIR/out"),
        "memory|[GTP]B",
    ),
    "calibrate into a file": (("calibrate", SPEC, "--out", "CSV"), "directory"),
    "calibrate few streams": (("calibrate", SPEC, "--streams", 3, "--out", "DIR/out"), "streams"),
    "calibrate 10¹² streams": (("calibrate", SPEC, "--streams", 10**12, "--out", "DIR/out"), "memory|[GTP]B"),
    "calibrate no length": (("calibrate", SPEC, "--length", 0, "--out", "DIR/out"), "length"),
    "calibrate a method that is none": (("calibrate", SPEC, "--method", "kalman", "--out", "DIR/out"), "kalman"),
    "calibrate seed 2⁶⁴": (("calibrate", SPEC, "--seed", 2**64, "--out", "DIR/out"), "seed"),
    "check few draws": (("check", SPEC, "--draws", 3), "draws"),
    "check 10¹² draws": (("check", SPEC, "--draws", 10**12), "memory|[GTP]B"),
    "check seed 2⁶⁴": (("check", SPEC, "--seed", 2**64), "seed"),
    "check nothing": (("check",), "SPEC"),
    "show nothing": (("show",), "FILE"),
    "show a directory": (("show", "DIR"), "read|directory"),
    "show a csv": (("show", "CSV"), "not a pfbr operator"),
    "show what is not there": (("show", "no.pfbr"), "no.pfbr"),
    "show a long name": (("show", "n" * 5000), "long|name"),
    "report nothing": (("report",), "DIR"),
    "report a file": (("report", "CSV"), "records|directory"),
    "report what is not there": (("report", "nowhere"), "nowhere"),
    "data that is none": (("data", "cifar", "--out", "DIR/d"), "cifar"),
    "data into a file": (("data", "mnist8m", "--out", "CSV"), "directory"),
    "data variants zero": (("data", "mnist8m", "--variants", 0, "--out", "DIR/d"), "variants"),
    "data 10⁹ workers": (("data", "mnist8m", "--workers", 10**9, "--out", "DIR/d"), "workers"),
    "reproduce what is none": (("reproduce", "fig9", "--out", "DIR/r"), "fig9"),
    "reproduce into a file": (("reproduce", "lds", "--quick", "--out", "CSV"), "directory"),
    "reproduce a system for the mixture": (
        ("reproduce", "mixture", "--system", "no.npz", "--out", "DIR/r"),
        "--system",
    ),
    "reproduce a system that is not there": (("reproduce", "lds", "--system", "no.npz", "--out", "DIR/r"), "no.npz"),
    "reproduce data that is not there": (
        ("reproduce", "logistic-vi", "--data", "nowhere", "--out", "DIR/r"),
        "nowhere",
    ),
    "reproduce seed negative": (("reproduce", "lds", "--seed", -1, "--out", "DIR/r"), "--seed"),
    "demo into a file": (("demo", "--out", "CSV"), "file|directory"),
    "demo minutes NaN": (("demo", "--minutes", "nan", "--out", "DIR/d"), "minutes"),
    "demo with --colour": (("demo", "--colour"), "--colour"),
}
FILES: dict[str, tuple[str, str]] = {
    "a syntax error": ("def model(:\n", "m.py.*line 1.*SyntaxError"),
    "an error": ("x = 1 / 0\n", "line 1.*ZeroDivisionError"),
    "a missing module": ("import no_such_module\n", "no_such_module"),
    "an exit": ("import sys\nsys.exit(0)\n", "exit"),
    "an exit with words": ("raise SystemExit('bye')\n", "exit|SystemExit"),
    "an error without words": ("raise RuntimeError\n", "RuntimeError"),
    "an error of many lines": ("raise ValueError('a\\nb\\nc')\n", "ValueError"),
    "an error of its own": ("class E(BaseException): pass\nraise E('odd')\n", "E.*odd"),
    "not UTF-8": ("# coding: iso-8859-15\nx = 'é'\nraise ValueError('é')\n", "ValueError"),
    "a NUL": ("x = 1\0\n", "m.py"),
    "recursion": ("def f(): f()\nf()\n", "RecursionError"),
    "no model": ("x = 3\n", "no attribute 'model'"),
    "a number": ("model = 3\n", "int, not a model"),
    "a factory that fails": ("def model(): raise ValueError('no')\n", "ValueError"),
    "a factory that exits": ("import sys\ndef model(): sys.exit(1)\n", "exit"),
    "a factory with arguments": ("def model(n): return n\n", "arguments"),
    "an abstract class": ("import pfbr\nclass model(pfbr.Model):\n    pass\n", "abstract|sample_prior"),
    "a class that is none": ("class model: pass\n", "not a model"),
    "a deleted path": ("import sys\nsys.path.clear()\nmodel = 3\n", "not a model"),
    "a generator": ("def model():\n    yield 3\n", "generator"),
}


def _line(words: tuple[Any, ...]) -> Callable[[Path], list[Any]]:
    def line(directory: Path) -> list[Any]:
        found = on_csv(*words)(directory)
        return [str(word).replace("DIR/", f"{directory}/") if str(word).startswith("DIR/") else word for word in found]

    return line


def _whole_stdout(directory: Path) -> None:
    """A model file that prints, and methods that print, leave the live stream's output JSON."""
    code = "print('loading')\nimport sys\nsys.stdout.write('more')\n" + GOOD_MODEL.replace(
        "def log_prior(self, x):",
        "def log_prior(self, x):\n        print('looking')\n        jax.debug.print('at {}', x)\n       ",
    )
    path = written(directory / "m.py", code)
    result = pfbr_command(
        "infer", f"{path}:model", "-", "--method", "gaussian", "--particles", 16, input="[0.1, 0.2]\n"
    )
    assert result.exit_code == 0, result.output[:200]
    lines = result.stdout.splitlines()
    assert len(lines) == 1, f"{len(lines)} lines on stdout: {result.stdout[:200]}"
    assert json.loads(lines[0])["stage"] == 1


def _same_directory(directory: Path) -> None:
    """A model file that changes directory does not change where paths lead."""
    (directory / "elsewhere").mkdir()
    path = written(directory / "m.py", f"import os\nos.chdir({str(directory / 'elsewhere')!r})\nmodel = 3\n")
    before = os.getcwd()
    try:
        pfbr_command("check", f"{path}:model")
        assert os.getcwd() == before, "the working directory has changed"
    finally:
        os.chdir(before)


def _same_path(directory: Path) -> None:
    import sys

    path = written(directory / "m.py", "import sys\nsys.path[:] = ['/nowhere']\nsys.argv[:] = []\nmodel = 3\n")
    before, words = list(sys.path), list(sys.argv)
    try:
        pfbr_command("check", f"{path}:model")
        assert sys.path == before, "sys.path has changed"
    finally:
        sys.path[:], sys.argv[:] = before, words


def _debug(*words: Any) -> Callable[[Path], None]:
    def check(directory: Path) -> None:
        result = pfbr_command(*words)
        assert "Traceback" in result.stderr, f"no traceback with --debug: {result.output[:200]}"
        assert result.exit_code == 2, f"exit status {result.exit_code}"

    return check


def _bad_lines(directory: Path) -> None:
    """Every bad line of a live stream is answered with an error and changes nothing; good ones go on."""
    bad = [
        "oops",
        '"hot"',
        "true",
        "[1]",
        "[1, 2, 3]",
        "[1, Infinity]",
        "[1, 1e999]",
        "[" * 50_000,
        "[1, " + "9" * 5000 + "]",
        '{"y": 1}',
        '{"observation": [1, 2], "time": "noon"}',
        '{"observation": [1, 2], "inputs": [1]}',
        "{}",
        "[]",
        "[null]",
        '{"retract": null}',
        '{"retract": [5, 5]}',
        '{"observation": "x"}',
        "\x00",
        "�",
        '{"observation": [1, 2], "time": 1e400}',
        "[[1, 2], [3, 4]]",
        "[1, [2]]",
        "nul",
        "[1 2]",
        "'[1, 2]'",
        '{"observation"}',
    ]
    text = "\n".join(bad) + "\n[0.1, 0.2]\n"
    result = pfbr_command("infer", SPEC, "-", "--method", "gaussian", "--particles", 16, input=text)
    assert result.exit_code == 0, f"exit status {result.exit_code}: {result.output[-200:]}"
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(answers) == len(bad) + 1, f"{len(answers)} answers to {len(bad) + 1} lines"
    for line, answer in zip(bad, answers, strict=False):
        assert "error" in answer, f"{line[:40]!r} was accepted"
        assert "\n" not in answer["error"]
        assert len(answer["error"]) < 900
    assert answers[-1]["stage"] == 1


def _cases() -> list[Case]:
    found = [infer(f"a spec: {n}", spec=spec, says=says) for n, (spec, says) in SPECS.items()]
    found += [infer(f"an option: {n}", *words, says=says) for n, (words, says) in OPTIONS.items()]
    found += [command_refused(GROUP, n, _line(words), says) for n, (words, says) in COMMANDS.items() if says != "."]
    found += [with_model(f"a model file with {n}", code, says) for n, (code, says) in FILES.items()]
    for command in ("check", "train", "compare", "calibrate"):
        found += [
            with_model(f"a model file with {n}", FILES[n][0], FILES[n][1], command=command)
            for n in ("a syntax error", "an exit", "no model", "a factory that exits")
        ]
    bad = GOOD_MODEL.replace("-0.5 * jnp.sum((observation - x) ** 2)", "None")
    found += [
        with_model("a likelihood that is None", bad, "log_likelihood", command=c)
        for c in ("infer", "train", "compare", "calibrate")
    ]
    bad = GOOD_MODEL.replace("-0.5 * jnp.sum((observation - x) ** 2)", "0.0 if x[0] > 0 else 1.0")
    found += [
        with_model("a likelihood that branches", bad, "log_likelihood.*jnp.where", command=c)
        for c in ("infer", "train", "compare", "calibrate")
    ]
    bad = GOOD_MODEL.replace("jax.random.normal(key, (2,))\n    def log_prior", "jnp.zeros(2)\n    def log_prior")
    found += [
        with_model("a prior that ignores its key", bad, "sample_prior.*key", command=c)
        for c in ("infer", "train", "compare", "calibrate")
    ]
    return [
        *found,
        Case(GROUP, "a model file that prints", _whole_stdout),
        Case(GROUP, "a model file that changes directory", _same_directory),
        Case(GROUP, "a model file that changes sys.path", _same_path),
        Case(GROUP, "--debug before the command", _debug("--debug", "show", "no.pfbr")),
        Case(GROUP, "--debug after the command", _debug("show", "no.pfbr", "--debug")),
        Case(GROUP, "27 bad lines of a live stream", _bad_lines),
    ]


CASES = _cases()
