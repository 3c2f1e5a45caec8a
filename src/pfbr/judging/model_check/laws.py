"""A method that draws, looked at by itself and beside the one that should be its density."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.judging.model_check.bridge_test import LITTLE, Agreement, agreement
from pfbr.judging.model_check.findings import Notebook, compiled_quickly
from pfbr.models.conditions import Conditions

CONSTANT = 0.2  # spread of log integrals from case to case that is still one constant
ENOUGH = 512  # draws: with fewer, a comparison sees nothing


class Case(NamedTuple):
    """What a draw depends on: x where the unknown moves or is observed, and the conditions."""

    x: Any
    conditions: Conditions


class Law(NamedTuple):
    """A method that draws, and the one that should be its density; of both, functions of one case."""

    sampler: str
    density: str | None
    draw: Callable[[Any, Case], Any]  # of a key, or of standard normals of the shape `from_normals`
    log_density: Callable[[Any, Case], Any]
    cases: Case
    num: int
    labels: list[str]
    from_normals: tuple[int, ...] | None = None
    may_repeat: bool = False  # whether a draw may be the same for every key


class Drawn(NamedTuple):
    """Draws (cases, n, …) of a law, and the log density (cases, n / 2) of the first half of them, where it has one."""

    points: np.ndarray
    log_density: np.ndarray | None


def check_law(book: Notebook, law: Law, shape: tuple[int, ...]) -> Drawn:
    """Draws of a method, looked at by themselves and against their density."""
    draws = _draws(book, law, shape)
    if law.density is None:
        return Drawn(draws, None)
    half = draws.shape[1] // 2
    log_density = compiled_quickly(jax.vmap(jax.vmap(law.log_density, (0, None))))
    values = _support(book, law, book.call(law.density, log_density, jnp.asarray(draws[:, :half]), law.cases))
    if len(draws) > 1:
        _elsewhere(book, law, np.asarray(log_density(jnp.asarray(np.roll(draws, 1, axis=0)[:, :half]), law.cases)))
    flat = draws.reshape(*draws.shape[:2], -1)
    if not _is_coarse(book, law, flat):
        found = agreement(
            flat[:, : 2 * half],
            lambda points: np.asarray(log_density(points.reshape(len(points), half, *shape), law.cases)),
            law.labels,
        )
        _compare(book, law, found)
    return Drawn(draws, values)


def _draws(book: Notebook, law: Law, shape: tuple[int, ...]) -> np.ndarray:
    size, key = (_length(law.cases), law.num), book.key_of(law.sampler)
    if law.from_normals is None:
        source = jax.random.split(key, size)
    else:
        rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
        source = jnp.asarray(rng.normal(size=(*size, *law.from_normals)), jnp.result_type(float))
    drawn = book.call(law.sampler, jax.vmap(jax.vmap(law.draw, (0, None))), source, law.cases)
    if not isinstance(drawn, jax.Array):
        book.stop(law.sampler, "returns an array", type(drawn).__name__, "Return one array.")
    if drawn.shape[2:] != shape:
        book.stop(law.sampler, "returns x", f"shape {drawn.shape[2:]}", f"Return shape {shape}, as `dim` says.")
    if not jnp.issubdtype(drawn.dtype, jnp.floating):
        advice = "Return floats, e.g. with `.astype(float)`: particles and observations are floats."
        if law.sampler != "sample_observation":
            book.stop(law.sampler, "returns floats", str(drawn.dtype), advice)
        book.note(law.sampler, "returns floats", str(drawn.dtype), advice)
    draws = np.asarray(drawn)
    flat = draws.reshape(*draws.shape[:2], -1)
    broken = ~np.isfinite(flat.astype(float)).all(axis=-1)
    if broken.any():
        book.stop(
            law.sampler,
            "is finite",
            f"NaN or inf in {_percent(broken)} of the draws",
            "Every draw must be finite; of constrained unknowns, also on the free scale (0 and 1 are not inside).",
        )
    book.good(law.sampler, "returns finite draws", f"shape {draws.shape[2:]}, {draws.dtype}")
    if np.all(flat == flat[:, :1]):
        if law.may_repeat:
            book.note(law.sampler, "differs from key to key", "the same for every key: deterministic")
        else:
            book.stop(
                law.sampler,
                "differs from key to key",
                f"{law.num} keys gave one and the same draw",
                "Draw with jax.random and the key that is passed, not with NumPy or a key of your own.",
            )
    else:
        book.good(law.sampler, "differs from key to key", f"{law.num} keys")
    return draws


def _support(book: Notebook, law: Law, values: Any) -> np.ndarray:
    """One finite number at every draw."""
    assert law.density is not None
    if not isinstance(values, jax.Array) or values.ndim != 2 or not jnp.issubdtype(values.dtype, jnp.floating):
        got = f"shape {values.shape[2:]}, {values.dtype}" if isinstance(values, jax.Array) else type(values).__name__
        book.stop(law.density, "returns one number", got, "Return one float for one x: sum over the coordinates.")
    values = np.asarray(values, float)
    nan, outside, infinite = np.isnan(values), np.isneginf(values), np.isposinf(values)
    if nan.any() or infinite.any():
        book.stop(
            law.density,
            "is a number at its own draws",
            f"{'NaN' if nan.any() else '+inf'} at {_percent(nan | infinite)} of the draws of `{law.sampler}`",
            "Look for 0/0, log of a negative number, inf − inf.",
        )
    if outside.any():
        book.stop(
            law.density,
            "contains its own draws",
            f"−inf at {_percent(outside)} of the draws of `{law.sampler}`",
            "The draws leave the density's support: widen it, or draw inside.",
        )
    book.good(law.density, "is finite at its own draws", f"{values.min():.3g} to {values.max():.3g}")
    return values


def _elsewhere(book: Notebook, law: Law, values: np.ndarray) -> None:
    """At the draws of another case a density may be zero, but must be a number."""
    if np.isnan(values).any():
        book.fault(
            str(law.density),
            "is a number elsewhere",
            f"NaN at {_percent(np.isnan(values))} of the draws of `{law.sampler}` for another x",
            "What is impossible has −inf; look for 0/0, log of a negative number, inf − inf.",
        )


def _is_coarse(book: Notebook, law: Law, flat: np.ndarray) -> bool:
    """Whether noise is so small beside the values that the precision in use cuts it into steps."""
    spread, size = flat.std(axis=1), np.abs(flat).max(axis=1)
    coarse = (spread > 0) & (spread < 64 * np.finfo(np.float32).eps * size)
    if not coarse.any():
        return False
    where = law.labels[int(np.argwhere(coarse)[0, 1])]
    book.note(
        law.sampler,
        f"agrees with {law.density}",
        f"{where} varies by less than the precision of its value: not compared",
        "Subtract an offset, or choose another unit.",
    )
    return True


def _compare(book: Notebook, law: Law, found: Agreement) -> None:
    question, asked = f"agrees with {law.density}", f"z = {found.z:.1f}, {found.limit:.1f} allowed"
    if not found.refused and found.overlap < LITTLE:
        book.note(law.sampler, question, "not compared: too many dimensions, or a shape too hard to follow")
    elif not found.refused:
        book.good(law.sampler, question, f"{law.num} draws, {asked}")
    elif found.shape:
        book.fault(
            law.sampler,
            question,
            f"no: {found.difference} ({asked})",
            f"Make `{law.sampler}` draw from exp `{law.density}`: look at scales (std or variance?), signs, and "
            "which arguments each of them uses.",
        )
    else:
        _integral(book, law, found.log_integrals, asked)


def _integral(book: Notebook, law: Law, log_integrals: np.ndarray, asked: str) -> None:
    """The density is right but for a factor, the same everywhere or one for each case."""
    assert law.density is not None
    low, high = np.exp(log_integrals.min()), np.exp(log_integrals.max())
    if np.ptp(log_integrals) < CONSTANT:
        book.fault(
            law.density,
            "integrates to one",
            f"to {np.exp(log_integrals.mean()):.3g} where `{law.sampler}` draws ({asked})",
            "Add the normalising constant (of a normal −½ log 2π − log std for each value): without it log evidence "
            "is wrong. Or the draws miss a part of the density.",
        )
    else:
        book.fault(
            law.density,
            "integrates to one",
            f"to {low:.3g} for one x and {high:.3g} for another ({asked})",
            "A factor that depends on x is missing, often −log std: posteriors are wrong without it.",
        )


def _percent(marked: np.ndarray) -> str:
    return f"{100 * marked.mean():.2g} %"


def at(cases: Case, index: int) -> Case:
    return jax.tree.map(lambda leaf: leaf[index], cases)


def _length(cases: Case) -> int:
    """How many cases there are: one where a draw depends on nothing."""
    leaves = jax.tree.leaves(cases)
    return leaves[0].shape[0] if leaves else 1
