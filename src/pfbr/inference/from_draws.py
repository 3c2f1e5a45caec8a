"""Somebody else's posterior as a prior: draws on the user's scale become a density of the model's free numbers."""

from typing import Any

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.checks import as_array
from pfbr.errors import InputError
from pfbr.inference.draws import systematic_indices
from pfbr.models.base import Model, has_parameters
from pfbr.models.replaced_prior import ReplacedPrior, with_prior
from pfbr.models.unknowns import Unknowns
from pfbr.particles.fitted_density import Quality, fit_density
from pfbr.typing import Numbers


def prior_from_draws(model: Model, draws: Any, weights: Numbers | None = None) -> tuple[ReplacedPrior, Quality]:
    """The model with the density of the draws as its prior, and how good the fit is.

    `draws` are (n, d), or a dict of (n, …) on the user's scale where the model names its unknowns; equally weighted
    unless `weights` (n,) come with them. The same draws give the same density.
    """
    if has_parameters(model):
        raise InputError(
            f"{type(model).__name__} has parameters beside its state, whose draws would be of both: fix the "
            "parameters, or make them part of the unknown."
        )
    unknowns = Unknowns.of(model)
    free = _flat(draws, int(model.dim)) if unknowns is None else _free(draws, unknowns)
    effective = None
    if weights is not None:
        share = _shares(weights, len(free))
        effective = float(1.0 / np.sum(share**2))
        free = free[systematic_indices(share)]
    n, d = free.shape
    if n < d + 2:
        raise InputError(f"`draws` must be at least {d + 2} for {d} unknowns; got {n}. Draw more of them.")
    constant = np.flatnonzero(np.ptp(free, axis=0) == 0)
    if constant.size:
        raise InputError(
            f"all `draws` have the same number {int(constant[0])} of the unknown's {d} (counted from 0): there is no "
            "density of what does not vary. Make it a constant of the model."
        )
    density, quality = fit_density(free, effective=effective)
    return with_prior(model, density), quality


def _flat(draws: Any, d: int) -> np.ndarray:
    if isinstance(draws, dict):
        raise InputError(f"`draws` is a dict, and the model's unknown is a vector: pass an array (n, {d}).")
    array = np.asarray(as_array(draws, "draws"), dtype=float)
    if array.ndim == 1 and d == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] != d:
        raise InputError(f"`draws` must have shape (n, {d}) for this model; got {array.shape}.")
    return array


def _free(draws: Any, unknowns: Unknowns) -> np.ndarray:
    if not isinstance(draws, dict) or set(draws) != set(unknowns.names):
        got = f"the keys {', '.join(sorted(map(str, draws)))}" if isinstance(draws, dict) else type(draws).__name__
        raise InputError(f"`draws` must be a dict with the unknowns {', '.join(unknowns.names)}; got {got}.")
    named: dict[str, Any] = {}
    for name, part in zip(unknowns.names, unknowns.parts, strict=True):
        array = as_array(draws[name], f"draws[{name!r}]")
        if array.shape[1:] != part.shape or array.ndim == 0:
            wanted = "".join(f", {size}" for size in part.shape)
            raise InputError(f"`draws[{name!r}]` must have shape (n{wanted or ','}); got {array.shape}.")
        if len(array) != len(next(iter(named.values()), array)):
            raise InputError(f"`draws[{name!r}]` holds {len(array)} draws, unlike the unknowns before it.")
        inside = np.asarray(jax.vmap(part.unconstrain)(jnp.asarray(array))).reshape(len(array), -1)
        if not np.isfinite(inside).all():
            bad = int(np.argmax(~np.isfinite(inside).all(axis=1)))
            raise InputError(f"`draws[{name!r}]` holds {array[bad]} at index {bad}, which its constraint rules out.")
        named[name] = array
    return np.asarray(jax.vmap(unknowns.unconstrain)(named), dtype=float)


def _shares(weights: Numbers, n: int) -> np.ndarray:
    share = np.asarray(as_array(weights, "weights"), dtype=float)
    if share.shape != (n,) or np.any(share < 0) or share.sum() <= 0:
        raise InputError(f"`weights` must be {n} numbers of at least 0, one for each draw; got shape {share.shape}.")
    return share / share.sum()
