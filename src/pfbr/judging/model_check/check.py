"""Is a model ready? Each method is called on draws of the model itself, and its answers are compared with each other.

Every finding names the method, what was found, and what to do. Where draws are compared with densities (`bridge_test`),
a right model is refused less than once in two hundred times, all comparisons together; a standard deviation that is
wrong by a fifth is seen in up to ten dimensions. Everything else is compared without chance.
"""

import dataclasses
import difflib
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp
from jax.flatten_util import ravel_pytree

from pfbr.checks import check_memory, checked_count, checked_key
from pfbr.errors import PfbrError
from pfbr.judging.model_check.findings import FAULT, Finding, Notebook
from pfbr.judging.model_check.gaps import check_gaps, check_likelihood_shape
from pfbr.judging.model_check.gradients import POINTS, check_gradient
from pfbr.judging.model_check.laws import ENOUGH, Case, Law, check_law
from pfbr.judging.model_check.matrices import (
    check_matrices_of_observation,
    check_matrices_of_prior,
    check_matrices_of_transition,
)
from pfbr.judging.model_check.named import check_unknowns, free_labels
from pfbr.models.base import Model, StateSpaceModel, has_observations, has_parameters, offers
from pfbr.models.checks import checked_model
from pfbr.models.conditions import Conditions, bind
from pfbr.models.needs import METHODS, all_needs, needs
from pfbr.models.unknowns import Unknowns

NEAR_NAME = 0.86  # likeness of two names from which one is taken for the other misspelt


@dataclasses.dataclass(frozen=True)
class CheckSettings:
    """How much is drawn; each field with its reason."""

    draws: int = 8192  # of the prior: sees a standard deviation that is wrong by a fifth in ten dimensions
    cases: int = 8  # of x, inputs and the like; under each, half as many transitions and observations are drawn


def check_model(model: Model, *, key: int | jax.Array = 0, settings: CheckSettings | None = None) -> list[Finding]:
    """Everything that can be said about a model, in the order in which it was asked."""
    settings = settings or CheckSettings()
    checked_count("draws", settings.draws, least=2 * ENOUGH, why="to see anything in them")
    checked_count("cases", settings.cases, least=2, why="to see what depends on x")
    dim = model.dim if isinstance(getattr(model, "dim", None), int) else 1
    check_memory(f"`draws` = {settings.draws}", 8 * settings.draws * settings.cases * dim, "Fewer draws are enough.")
    book = Notebook(checked_key(key))
    book.guarded(_check, book, model, settings)
    return book.findings


def is_ready(findings: list[Finding]) -> bool:
    """Whether nothing has to be mended."""
    return all(finding.level != FAULT for finding in findings)


def _check(book: Notebook, model: Model, settings: CheckSettings) -> None:
    _declarations(book, model)
    params = _parameters(book, model, settings) if has_parameters(model) else None
    prior = _prior(book, model, settings, params)
    conditions = _conditions(book, model, settings, params)
    if conditions is None:
        return
    x = prior[: settings.cases]
    if isinstance(model, StateSpaceModel):
        x = book.guarded(_transition, book, model, settings, x, conditions, otherwise=x)
    book.guarded(_observation, book, model, settings, x, conditions, prior)


def _declarations(book: Notebook, model: Model) -> None:
    name = type(model).__name__
    try:
        checked_model(model)
        words = sorted(all_needs(model))
    except PfbrError as error:
        book.stop(name, "declares what it needs", str(error), "Mend the signature or the field that is named.")
    kind = "a latent state" if isinstance(model, StateSpaceModel) else "static"
    needed = f", needs {', '.join(words)}" if words else ""
    book.good(name, "declares what it needs", f"dim {_dim(model)}, {kind}{needed}")
    for written in _own_methods(type(model)):
        near = difflib.get_close_matches(written, list(METHODS), n=1, cutoff=NEAR_NAME)
        if near and not (hasattr(model, near[0]) and offers(model, near[0])):
            book.fault(
                written, "has a name that is known", f"`{written}` is never called", f"Did you mean `{near[0]}`?"
            )


def _parameters(book: Notebook, model: Any, settings: CheckSettings) -> Any:
    """Draws of the parameters, one for each case."""
    one = book.call("sample_parameters", model.sample_parameters, book.key)
    _, unravel = ravel_pytree(one)
    labels = [
        "params" + jax.tree_util.keystr(path) + (f"[{i}]" if jnp.ndim(leaf) else "")
        for path, leaf in jax.tree_util.tree_leaves_with_path(one)
        for i in range(jnp.size(leaf))
    ]
    written = offers(model, "log_parameters")
    law = Law(
        "sample_parameters",
        "log_parameters" if written else None,
        lambda key, case: ravel_pytree(model.sample_parameters(key))[0],
        lambda flat, case: model.log_parameters(unravel(flat)),
        Case(None, Conditions()),
        settings.draws,
        labels,
    )
    if not written:
        advice = "Write the normalised log density of `sample_parameters`."
        book.fault("log_parameters", "is written", "missing", advice)
    drawn = check_law(book, law, (len(labels),)).points[0]
    return jax.vmap(unravel)(jnp.asarray(drawn[: settings.cases]))


def _prior(book: Notebook, model: Model, settings: CheckSettings, params: Any) -> np.ndarray:
    """Draws (n, d) of the prior, those of the first cases first."""
    given = params is not None and "params" in needs(model, "sample_prior") + needs(model, "log_prior")
    cases = Case(None, Conditions(params=params if given else None))
    size = (_dim(model),)
    if Unknowns.of(model) is not None:
        check_unknowns(book, model, jax.tree.map(lambda leaf: leaf[0], cases.conditions.params))
    law = Law(
        "sample_prior",
        "log_prior",
        lambda key, case: bind(model, case.conditions).sample_prior(key),
        lambda x, case: bind(model, case.conditions).log_prior(x),
        cases,
        settings.draws // 2 if given else settings.draws,
        free_labels(model),
    )
    drawn = check_law(book, law, size)
    x = np.swapaxes(drawn.points, 0, 1).reshape(-1, *size)
    points = Case(None, Conditions(params=_repeated(cases.conditions.params, POINTS)))
    check_gradient(book, "log_prior", law.log_density, x[:POINTS], points, x.std(0), law.labels)
    if offers(model, "prior_from_normal"):

        def by_normals(z, case):
            return bind(model, case.conditions).prior_from_normal(z)

        other = law._replace(sampler="prior_from_normal", draw=by_normals, from_normals=size)
        book.guarded(check_law, book, other, size)
    book.guarded(check_matrices_of_prior, book, model, drawn)
    return x


def _conditions(book: Notebook, model: Model, settings: CheckSettings, params: Any) -> Conditions | None:
    """What comes with an observation, drawn as a simulated stream draws it; None where that cannot be."""
    words = all_needs(model)
    if "inputs" in words and not offers(model, "sample_inputs"):
        book.note(
            "sample_inputs",
            "is written",
            "missing: what names `inputs` was not looked at",
            "Write `sample_inputs(self, key)`, which training and calibration need too.",
        )
        return None
    keys = jax.random.split(book.key_of("conditions"), settings.cases)
    inputs = dt = time = None
    if "inputs" in words:
        inputs = book.call("sample_inputs", jax.vmap(model.sample_inputs), keys)
        if not all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in jax.tree.leaves(inputs)):
            book.stop("sample_inputs", "is finite", "NaN or inf", "Draw finite inputs.")
    if words & {"dt", "time"} or offers(model, "sample_dt"):
        as_float = jax.vmap(lambda key: jnp.asarray(model.sample_dt(key), jnp.result_type(float)))
        dt = book.call("sample_dt", as_float, keys)
        if dt.ndim != 1 or not bool(jnp.all(jnp.isfinite(dt) & (dt >= 0))):
            book.stop("sample_dt", "is a time", "not one number of at least 0", "Return one number, 0 or more.")
        dt = jnp.where(dt > 0, dt, 1.0)  # at the same instant nothing moves, and there is nothing to compare
        time = jnp.cumsum(dt) if "time" in words else None
    return Conditions(dt, time, inputs, None, params)


def _transition(
    book: Notebook, model: Any, settings: CheckSettings, x: np.ndarray, conditions: Conditions
) -> np.ndarray:
    """One move from each x."""
    size, written = x.shape[1:], offers(model, "log_transition")
    law = Law(
        "sample_transition",
        "log_transition" if written else None,
        lambda key, case: bind(model, case.conditions).sample_transition(key, case.x),  # type: ignore[attr-defined]
        lambda to, case: bind(model, case.conditions).log_transition(to, case.x),  # type: ignore[attr-defined]
        Case(jnp.asarray(x), conditions),
        settings.draws // 2,
        free_labels(model),
        may_repeat=not written,
    )
    drawn = check_law(book, law, size)
    moved = drawn.points[:, 0]
    if offers(model, "transition_from_normal"):

        def by_normals(z, case):
            return bind(model, case.conditions).transition_from_normal(case.x, z)  # type: ignore[attr-defined]

        other = law._replace(sampler="transition_from_normal", draw=by_normals, from_normals=size)
        book.guarded(check_law, book, other, size)
    if not written:
        advice = "Write it where the dynamics have a density."
        book.note("log_transition", "is written", "missing: methods that need it refuse the model", advice)
        return moved

    def by_earlier(earlier, case):
        return law.log_density(case.x, Case(earlier, case.conditions))

    spread = np.median(drawn.points.std(1), axis=0)
    check_gradient(book, "log_transition", law.log_density, moved, law.cases, spread, law.labels, of="x_next")
    back = Case(jnp.asarray(moved), conditions)
    check_gradient(book, "log_transition", by_earlier, x, back, x.std(0), law.labels)
    book.guarded(check_matrices_of_transition, book, model, law, drawn)
    return moved


def _observation(
    book: Notebook, model: Model, settings: CheckSettings, x: np.ndarray, conditions: Conditions, prior: np.ndarray
) -> None:
    if not has_observations(model):
        advice = "Write it: forecasts, training and calibration need it too."
        book.note("sample_observation", "is written", "missing: `log_likelihood` was not looked at", advice)
        return
    cases = Case(jnp.asarray(x), conditions)

    def draw(key, case):
        return bind(model, case.conditions).sample_observation(key, case.x)

    def log_likelihood(observation, case):
        return bind(model, case.conditions, shape=observation.shape).log_likelihood(case.x, observation)

    def by_x(at, case):
        return log_likelihood(case.x, Case(at, case.conditions))

    shape = check_likelihood_shape(book, model, draw, cases)
    labels = ["observation" + (f"[{','.join(map(str, i))}]" if i else "") for i in np.ndindex(*shape)]
    law = Law("sample_observation", "log_likelihood", draw, log_likelihood, cases, settings.draws // 2, labels)
    drawn = check_law(book, law, shape)
    seen = Case(jnp.asarray(drawn.points[:, 0]), conditions)
    check_gradient(book, "log_likelihood", by_x, x, seen, prior.std(0), free_labels(model))
    book.guarded(check_gaps, book, model, cases, seen.x)
    book.guarded(check_matrices_of_observation, book, model, law, drawn)


def _dim(model: Any) -> int:
    return int(model.dim)


def _own_methods(cls: type) -> list[str]:
    """Functions that the model's own classes define under names that are none of ours."""
    known = {*METHODS, *dir(Model), *dir(StateSpaceModel)}
    return [n for n in dir(cls) if not n.startswith("_") and n not in known and callable(getattr(cls, n))]


def _repeated(tree: Any, num: int) -> Any:
    """`num` of the leading entries, again and again where there are fewer."""
    return jax.tree.map(lambda leaf: jnp.concatenate([leaf] * (-(-num // len(leaf))))[:num], tree)
