"""What a model says of itself in matrices and moments, against its densities: two formulas for one number."""

from typing import Any

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.judging.model_check.findings import Notebook
from pfbr.judging.model_check.laws import Law
from pfbr.models.base import LinearGaussian, Model, offers
from pfbr.models.conditions import bind
from pfbr.models.needs import needs
from pfbr.models.unknowns import Unknowns

ALIKE = 1e-3  # relative difference up to which two values are the same in single precision


def check_matrices_of_prior(book: Notebook, model: Model, x: np.ndarray) -> None:
    said = _matrices(book, model)
    if said is not None:
        values = book.call("log_prior", jax.vmap(model.log_prior), jnp.asarray(x))
        _compare(book, "linear_gaussian", "agrees with log_prior", values, _normal(x, said.mean, said.cov))


def check_matrices_of_transition(book: Notebook, model: Any, law: Law, moved: np.ndarray) -> None:
    own = book.call("log_transition", jax.vmap(law.log_density), jnp.asarray(moved), law.cases)
    if offers(model, "transition_mean_and_std") and Unknowns.of(model) is None:

        def by_moments(to, case):
            said = bind(model, case.conditions).transition_mean_and_std(case.x)  # type: ignore[attr-defined]
            return jnp.sum(jax.scipy.stats.norm.logpdf(to, *said))

        values = book.call("transition_mean_and_std", jax.vmap(by_moments), jnp.asarray(moved), law.cases)
        _compare(book, "transition_mean_and_std", "agrees with log_transition", own, values)
    said = _matrices(book, model)
    if said is not None:
        means = np.asarray(law.cases.x) @ np.asarray(said.A).T + (0.0 if said.a is None else np.asarray(said.a))
        _compare(book, "linear_gaussian", "agrees with log_transition", own, _normal(moved, means, said.Q))


def check_matrices_of_observation(book: Notebook, model: Model, law: Law, seen: np.ndarray) -> None:
    said = _matrices(book, model)
    if said is not None:
        own = book.call("log_likelihood", jax.vmap(law.log_density), jnp.asarray(seen), law.cases)
        means = np.asarray(law.cases.x) @ np.asarray(said.B).T + (0.0 if said.b is None else np.asarray(said.b))
        values = _normal(seen.reshape(len(seen), -1), means, said.R)
        _compare(book, "linear_gaussian", "agrees with log_likelihood", own, values)


def _matrices(book: Notebook, model: Model) -> LinearGaussian | None:
    """Those that are the same for every observation."""
    if not offers(model, "linear_gaussian") or needs(model, "linear_gaussian"):
        return None
    return book.call("linear_gaussian", lambda: model.linear_gaussian())


def _compare(book: Notebook, method: str, question: str, own: Any, other: Any) -> None:
    own, other = np.asarray(own, float), np.asarray(other, float)
    gap = np.abs(own - other) / (1 + np.abs(own))
    if np.all(gap <= ALIKE):
        book.good(method, question, f"at {len(own)} points")
        return
    at = int(np.argmax(np.where(np.isnan(gap), np.inf, gap)))
    book.fault(method, question, f"{other[at]:.5g} instead of {own[at]:.5g}", "Make both say the same law.")


def _normal(x: Any, mean: Any, cov: Any) -> np.ndarray:
    """Log densities of N(mean, cov); −inf where cov is singular."""
    x, mean, cov = np.asarray(x, float), np.asarray(mean, float), np.asarray(cov, float)
    try:
        factor = np.linalg.cholesky(cov)
    except np.linalg.LinAlgError:
        return np.full(len(x), -np.inf)
    z = np.linalg.solve(factor, (x - mean).T)
    return -0.5 * np.sum(z**2, axis=0) - np.sum(np.log(np.diagonal(factor))) - 0.5 * x.shape[1] * np.log(2 * np.pi)
