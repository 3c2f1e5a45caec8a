"""Which site of a NumPyro function is the observation, and of what shape; found by running it for shapes alone."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
from jax import numpy as jnp

from pfbr.errors import ModelError
from pfbr.models.numpyro.bijection import at_free_numbers
from pfbr.models.numpyro.sites import Site, Sites, is_discrete, plates_of, shape_of

Call = Callable[[Any, Callable[[Site], Any], bool], Sites]  # the function at one observation, or at None; strict or not


@dataclasses.dataclass(frozen=True)
class Observed:
    """The observed site: its name, its shape, the plates around it with their sizes, and the latent sites' shapes."""

    name: str
    shape: tuple[int, ...]
    plates: dict[str, int]
    latent: dict[str, tuple[int, ...]]
    local: dict[str, tuple[str, ...]]  # the plates around each latent site


def find_observed(call: Call, argument: str, lead: tuple[int, ...] = ()) -> Observed:
    """Try the shapes that sites have without an observation, the last one's first, until one site takes it."""
    first: Exception | None = None
    shapes: list[tuple[int, ...]] = [lead, (*lead, 1)]  # for a function that cannot do without an observation
    try:
        free = _shapes(call, None)
        if free.observed:
            _refuse_others(free.observed)
        named = [shape_of(site) for name, site in free.latent.items() if name == argument]
        shapes = list(dict.fromkeys([*named, *(shape_of(site) for site in reversed(free.latent.values()))]))
    except ModelError:
        raise
    except Exception as error:  # whatever a user's function may raise
        first = error
    for shape in shapes:
        try:
            sites = _shapes(call, shape)
        except ModelError:
            raise
        except Exception as error:
            first = first or error
            continue
        fitting = [name for name, site in sites.observed.items() if shape_of(site) == shape]
        if len(sites.observed) > 1:
            _refuse_others(sites.observed)
        if fitting:
            site = sites.observed[fitting[0]]
            latent = {name: shape_of(one) for name, one in sites.latent.items()}
            local = {name: tuple(plates_of(one)) for name, one in sites.latent.items()}
            return Observed(fitting[0], shape, plates_of(site), latent, local)
    if first is not None:
        raise ModelError(f"the NumPyro function failed on an example: {first}") from first
    raise ModelError(
        f"no site of the NumPyro function takes `{argument}` as its observation: write "
        f"`numpyro.sample(…, obs={argument})` for one site, the row's."
    )


def _shapes(call: Call, shape: tuple[int, ...] | None) -> Sites:
    """The sites of one run without computing anything."""
    found: list[Sites] = []

    def run(y):
        strict = y is not None  # without an observation its own site is a latent one, and may be discrete
        found.append(call(y, at_free_numbers(0.0) if strict else _anything, strict))

    jax.eval_shape(run, None if shape is None else jnp.zeros(shape))
    return found[0]


def _anything(site: Site) -> Any:
    return jnp.zeros(shape_of(site), int) if is_discrete(site["fn"]) else at_free_numbers(0.0)(site)


def _refuse_others(observed: dict[str, Site]) -> None:
    factors = [name for name, site in observed.items() if type(site["fn"]).__name__ == "Unit"]
    if factors:
        raise ModelError(
            f"the factor {factors[0]!r} (numpyro.factor) belongs neither to the prior nor to one row: write it as a "
            "distribution, numpyro.sample(…)."
        )
    names = ", ".join(map(repr, observed))
    if len(observed) > 1:
        raise ModelError(
            f"the sites {names} are observed; a row has one observation: make it one site, a vector with gaps where "
            "a part is missing."
        )
    raise ModelError(f"the site {names} is observed whatever comes: pass it the observation, `obs=y`, or leave it out.")
