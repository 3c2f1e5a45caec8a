"""What a model says of itself in matrices and moments, against its densities: two formulas for one number."""

from typing import Any

import jax
import numpy as np

from pfbr.judging.model_check.findings import Notebook
from pfbr.judging.model_check.laws import Drawn, Law
from pfbr.models.base import LinearGaussian, Model, offers
from pfbr.models.conditions import bind
from pfbr.models.needs import needs
from pfbr.models.unknowns import Unknowns

POINTS = 16  # of each case that are compared
ALIKE = 1e-3  # relative difference up to which two values are the same in single precision


def check_matrices_of_prior(book: Notebook, model: Model, drawn: Drawn) -> None:
    said = _matrices(book, model)
    if said is not None:
        _compare(book, "linear_gaussian", "log_prior", drawn, said.mean, said.cov)


def check_matrices_of_transition(book: Notebook, model: Any, law: Law, drawn: Drawn) -> None:
    if offers(model, "transition_mean_and_std") and Unknowns.of(model) is None:

        def moments(case):
            return bind(model, case.conditions).transition_mean_and_std(case.x)  # type: ignore[attr-defined]

        mean, std = book.call("transition_mean_and_std", jax.vmap(moments), law.cases)
        covs = np.asarray(std)[..., None] ** 2 * np.eye(mean.shape[-1])
        _compare(book, "transition_mean_and_std", "log_transition", drawn, mean, covs)
    said = _matrices(book, model)
    if said is not None:
        _compare(book, "linear_gaussian", "log_transition", drawn, _through(said.A, said.a, law), said.Q)


def check_matrices_of_observation(book: Notebook, model: Model, law: Law, drawn: Drawn) -> None:
    said = _matrices(book, model)
    if said is not None:
        _compare(book, "linear_gaussian", "log_likelihood", drawn, _through(said.B, said.b, law), said.R)


def _matrices(book: Notebook, model: Model) -> LinearGaussian | None:
    """Those that are the same for every observation."""
    if not offers(model, "linear_gaussian") or needs(model, "linear_gaussian"):
        return None
    return book.call("linear_gaussian", lambda: model.linear_gaussian())


def _through(matrix: Any, shift: Any, law: Law) -> np.ndarray:
    """The means for every case, (cases, k)."""
    return np.asarray(law.cases.x) @ np.asarray(matrix).T + (0.0 if shift is None else np.asarray(shift))


def _compare(book: Notebook, method: str, density: str, drawn: Drawn, mean: Any, cov: Any) -> None:
    """N(mean, cov), of each case or of all, at the first draws."""
    cases = len(drawn.points)
    points = drawn.points[:, :POINTS].reshape(cases, POINTS, -1).astype(float)
    mean = np.broadcast_to(np.asarray(mean, float), (cases, points.shape[-1]))
    covs = np.broadcast_to(np.asarray(cov, float), (cases, points.shape[-1], points.shape[-1]))
    assert drawn.log_density is not None
    own = drawn.log_density[:, :POINTS]
    other = np.stack([_normal(points[i], mean[i], covs[i]) for i in range(cases)])
    gap = np.abs(own - other) / (1 + np.abs(own))
    if np.all(gap <= ALIKE):
        book.good(method, f"agrees with {density}", f"at {own.size} points")
        return
    at = np.unravel_index(np.argmax(np.where(np.isnan(gap), np.inf, gap)), gap.shape)
    found = f"{other[at]:.5g} instead of {own[at]:.5g}"
    book.fault(method, f"agrees with {density}", found, "Make both say the same law.")


def _normal(x: np.ndarray, mean: np.ndarray, cov: np.ndarray) -> np.ndarray:
    """Log densities of N(mean, cov); −inf where cov is singular."""
    try:
        factor = np.linalg.cholesky(cov)
    except np.linalg.LinAlgError:
        return np.full(len(x), -np.inf)
    z = np.linalg.solve(factor, (x - mean).T)
    return -0.5 * np.sum(z**2, axis=0) - np.sum(np.log(np.diagonal(factor))) - 0.5 * x.shape[1] * np.log(2 * np.pi)
