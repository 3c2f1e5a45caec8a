"""`pfbr infer`: posteriors of recorded streams into a file, or of a live one, line by line."""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TextIO

import jax
import numpy as np
import typer
from rich.console import Console

import pfbr
from pfbr.cli import spec
from pfbr.cli.observations import FORMATS, parse_line, read
from pfbr.cli.operators import HELP, judged, named_operator
from pfbr.cli.output import check_writable, write_npz
from pfbr.errors import InputError, PfbrError
from pfbr.inference.ood import learn_reference_statistics, remembered
from pfbr.models import Model, observation_shape
from pfbr.particles.particles import weighted_cov, weighted_mean


def infer(
    operator: str = typer.Argument(metavar="OPERATOR", help=HELP),
    model: str = typer.Argument(metavar="SPEC", help=spec.HELP),
    observations: str = typer.Argument(
        metavar="OBSERVATIONS", help=f"{FORMATS}; or `-`: JSON lines from standard input, answered one by one."
    ),
    out: Path | None = typer.Option(None, "--out", help="The .npz file to write; optional with `-`."),
    particles: int = typer.Option(256, "--particles", min=2, help="How many particles carry the posterior."),
    seed: int = typer.Option(0, "--seed", help="Same seed, same answer."),
    repair: str = typer.Option(
        "never",
        "--repair",
        help="never: report how far to trust each step; auto: weigh, and redo steps that went wrong.",
    ),
    keep_history: int = typer.Option(
        0, "--keep-history", min=0, help="Store so many observations, to judge an unknown at rest against all of them."
    ),
    shift: bool = typer.Option(
        False,
        "--shift",
        help="Also how unlike the model's own streams a step is; trained operators always say how unlike training.",
    ),
) -> None:
    """Update a posterior with each observation of a stream.

    The .npz holds, after every observation, `particles` (…, T, N, d), `weights` and `log_density` (…, T, N), `mean`
    (…, T, d), `covariance` (…, T, d, d), and what is known about each step, each (…, T): `ess`, `step_ess`, `pareto_k`,
    `flagged`, `repaired`, `log_evidence_increment`, `log_evidence`, `num_steps`, `alive`, and where known `shift`.

    A live stream answers every line at once; a bad line gets an answer with the key "error" and changes nothing. The
    line {"retract": null} takes the last observation back, {"retract": [0.3]} that one, where the unknown is at rest.

    Examples:

        pfbr infer mixture.pfbr gaussian-mixture stream.csv --out posterior.npz

        echo '[0.3]' | pfbr infer gaussian gaussian-mixture -
    """
    live = observations == "-"
    if out is None and not live:
        raise InputError("--out FILE.npz is needed to keep the posteriors of a file of observations.")
    if out is not None:
        check_writable(out, suffix=".npz")
    chosen = named_operator(operator)
    problem = spec.resolve(model)
    key = jax.random.key(seed)
    reference = remembered(chosen) if isinstance(chosen, pfbr.Operator) else None
    if shift and reference is None:
        if not isinstance(chosen, pfbr.Operator):
            raise InputError("--shift is for operators that move particles by a flow, not for `solving`: leave it out.")
        reference = learn_reference_statistics(key, chosen, problem, num_particles=particles)
    method = judged(chosen, repair=repair, keep_history=keep_history, reference=reference)
    console = Console(stderr=True)
    if live:
        session = pfbr.Session(key, method, problem, num_particles=particles)
        arrays = _answer(session, problem, sys.stdin, sys.stdout, keep=out is not None)
    else:
        streams = read(Path(observations), problem)
        with console.status(f"updating {particles} particles through {streams.shape} observations"):
            arrays = _whole(pfbr.run(key, method, problem, streams, num_particles=particles))
        console.print(_in_words(arrays, particles), highlight=False)
    if out is not None and arrays:
        write_npz(out, arrays)
        console.print(f"wrote {out}: " + ", ".join(f"{name} {value.shape}" for name, value in arrays.items()))


def _whole(trace: Any) -> dict[str, np.ndarray]:
    """What is kept of a recorded stream."""
    held = trace.particles
    arrays = {"particles": held.points, "weights": np.exp(held.log_weights)}
    if held.log_density is not None:
        arrays["log_density"] = held.log_density
    arrays |= {"mean": weighted_mean(held), "covariance": weighted_cov(held), **trace.info}
    return {name: np.asarray(value) for name, value in arrays.items()}


def _answer(
    session: Any, model: Model, lines: Iterable[str], answers: TextIO, *, keep: bool
) -> dict[str, np.ndarray] | None:
    """One line of JSON for every line that comes in; with `keep`, all posteriors stacked as for a file."""
    shape = observation_shape(model)
    kept: list[dict[str, Any]] = []

    def say(answer: dict[str, Any]) -> None:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    for number, line in _until_interrupted(lines):
        if not line.strip():
            continue
        try:
            posterior, last = _next(session, line, shape, f"line {number}")
        except PfbrError as error:
            say({"line": number, "error": str(error)})
            continue
        covariance = posterior.cov()
        say(
            {
                "stage": session.stage,
                "mean": posterior.mean().tolist(),
                "std": np.sqrt(np.diagonal(covariance)).tolist(),
                "covariance": covariance.tolist(),
                "info": {name: _plain(value) for name, value in posterior.info.items()},
            }
        )
        if keep and last:
            kept.pop()
        elif keep:
            kept.append(_one(posterior))
    return {name: np.stack([stage[name] for stage in kept]) for name in kept[0]} if kept else None


def _next(session: Any, line: str, shape: tuple[int, ...] | None, where: str) -> tuple[Any, bool]:
    """The posterior after a line, and whether the line took the last observation back."""
    try:
        told = json.loads(line)
    except ValueError:
        told = None  # `parse_line` says what is wrong with it
    if not isinstance(told, dict) or "retract" not in told:
        return session.update(parse_line(line, shape, where)), False
    if told["retract"] is None:
        return session.retract(), True
    return session.retract(parse_line(json.dumps(told["retract"]), shape, where)), False


def _in_words(arrays: dict[str, np.ndarray], particles: int) -> str:
    """How far to trust the posteriors of a whole file, in a line."""
    if "flagged" not in arrays:
        return f"log evidence {_span(arrays['log_evidence'][..., -1])}" if "log_evidence" in arrays else ""
    flagged, repaired = arrays["flagged"] > 0, arrays["repaired"] > 0
    words = [
        f"log evidence {_span(arrays['log_evidence'][..., -1])}",
        f"{flagged.sum()} of {flagged.size} steps flagged" + (f" (first: {_first(flagged)})" if flagged.any() else ""),
        f"{repaired.sum()} repaired",
        f"least ESS {arrays['ess'].min():.0f} of {particles}",
    ]
    if "shift" in arrays:
        words.append(f"largest shift {arrays['shift'].max():.1f}")
    return ", ".join(words) + "."


def _span(values: np.ndarray) -> str:
    low, high = float(np.min(values)), float(np.max(values))
    return f"{low:.2f}" if values.ndim == 0 else f"{low:.2f} to {high:.2f} over {values.size} streams"


def _first(flags: np.ndarray) -> str:
    *stream, stage = (int(i) for i in np.argwhere(flags)[0])
    return f"observation {stage + 1}" + (f" of stream {stream[0] + 1}" if stream else "")


def _one(posterior: Any) -> dict[str, Any]:
    arrays = {"particles": posterior.particles, "weights": posterior.weights}
    if posterior.log_density is not None:
        arrays["log_density"] = posterior.log_density
    return arrays | {"mean": posterior.mean(), "covariance": posterior.cov(), **posterior.info}


def _until_interrupted(lines: Iterable[str]) -> Iterable[tuple[int, str]]:
    """Ctrl-C ends a live stream as its end does: what was kept is still written."""
    try:
        yield from enumerate(lines, start=1)
    except KeyboardInterrupt:
        return


def _plain(value: Any) -> Any:
    """JSON has no word for infinity or NaN."""
    return None if isinstance(value, float) and not np.isfinite(value) else value
