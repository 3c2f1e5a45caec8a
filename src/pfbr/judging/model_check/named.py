"""Named unknowns: draws with the declared shapes, where the constraints say, there and back from the free scale."""

from typing import Any

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.judging.model_check.findings import Notebook, compiled_quickly
from pfbr.models.base import Model
from pfbr.models.constraints import Free
from pfbr.models.needs import needs
from pfbr.models.unknowns import Unknowns

DRAWS = 512
BACK = 5e-3  # relative difference after going to the free scale and back that single precision explains


def check_unknowns(book: Notebook, model: Model, params: Any) -> None:
    """The draws of `sample_prior` as the user sees them, under one value of the parameters."""
    unknowns = Unknowns.of(model)
    assert unknowns is not None
    words = {"params": params} if "params" in needs(model, "sample_prior") else {}
    keys = jax.random.split(book.key_of("unknowns"), DRAWS)
    drawn = book.call("sample_prior", jax.vmap(lambda key: model.sample_prior(key, **words)), keys)
    if not isinstance(drawn, dict) or set(drawn) != set(unknowns.names):
        got = f"the keys {', '.join(sorted(drawn))}" if isinstance(drawn, dict) else type(drawn).__name__
        book.stop("sample_prior", "returns the unknowns", got, f"Return a dict with {', '.join(unknowns.names)}.")
    for name, part in zip(unknowns.names, unknowns.parts, strict=True):
        values = np.asarray(drawn[name])
        if values.shape[1:] != part.shape:
            advice = f"`unknowns` says {part.shape}. Return that shape."
            book.stop("sample_prior", f"returns {name!r} as declared", f"shape {values.shape[1:]}", advice)
        there_and_back = compiled_quickly(jax.vmap(lambda value, part=part: part.constrain(part.unconstrain(value))))
        back = np.asarray(there_and_back(jnp.asarray(values, jnp.result_type(float))))
        off = ~(np.abs(back - values) <= BACK * np.maximum(1.0, np.abs(values)))  # NaN is off
        outside = off.reshape(len(off), -1).any(axis=1).mean()
        what, question = type(part).__name__.lower(), f"draws {name!r} within its constraint"
        if outside > 0:
            book.stop(
                "sample_prior",
                question,
                f"{100 * outside:.1f} % of the draws are not {what}",
                f"Draw {name!r} where `{what}` says, or declare another constraint.",
            )
        if not isinstance(part, Free):
            book.good("sample_prior", question, f"{what}; {part.size} free numbers, there and back")


def free_labels(model: Model) -> list[str]:
    """A name for each free number."""
    unknowns = Unknowns.of(model)
    if unknowns is None:
        return [f"x[{i}]" for i in range(int(model.dim))]
    found = []
    for name, part in zip(unknowns.names, unknowns.parts, strict=True):
        scale = "" if isinstance(part, Free) else " (free scale)"
        found += [name + (f"[{i}]" if part.size > 1 else "") + scale for i in range(part.size)]
    return found
