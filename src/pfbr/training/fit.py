"""Algorithm 1: draw tasks, step, validate every so often, return the best operator seen."""

import contextlib
import dataclasses
import functools
import hashlib
import math
import os
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp
from jax.sharding import Mesh

from pfbr.checks import checked_key, shortened
from pfbr.errors import InputError, ModelError, TrainingError
from pfbr.inference.architectures import to_json
from pfbr.inference.ood import with_reference
from pfbr.inference.operator import Operator
from pfbr.inference.provenance import Provenance
from pfbr.io import locks
from pfbr.io.files import strict
from pfbr.models.base import Model, StateSpaceModel, has_observations
from pfbr.models.checks import checked_methods_of, checked_model
from pfbr.sharding import checked_mesh, from_first, leads, several_processes
from pfbr.training.objectives.base import Objective
from pfbr.training.objectives.continuity import ContinuityObjective
from pfbr.training.objectives.continuity import applies as continuity_applies
from pfbr.training.objectives.elbo import ElboObjective
from pfbr.training.objectives.prequential import PrequentialObjective
from pfbr.training.progress import Progress, text_bar
from pfbr.training.reference import learn_reference_statistics
from pfbr.training.settings import TrainingSettings
from pfbr.training.starts import starting_operator
from pfbr.training.state import TrainingState, read_state, write_state
from pfbr.training.step import optimiser, train_step
from pfbr.training.tasks import Family, ModelFamily
from pfbr.training.validation import ValidationSet, draw_validation_set, validate
from pfbr.typing import Key
from pfbr.version import VERSION

OBJECTIVES = ("auto", "elbo", "continuity", "prequential")


class TrainingReport(NamedTuple):
    """How training went: the validations, lower scores being better, and what the best operator scored."""

    history: list[dict]
    best_score: float
    exact_score: float | None  # of as many exact draws, where there are any: the best score is above that
    steps: int
    seconds: float
    skipped_tasks: int


def fit(
    model: Model,
    *,
    minutes: float | None = None,
    key: int | jax.Array = 0,
    operator: str | Operator = "auto",
    objective: str | Objective = "auto",
    settings: TrainingSettings | None = None,
    family: Family | None = None,
    validation_family: Family | None = None,
    architecture: dict[str, Any] | None = None,
    checkpoint: str | None = None,
    resume: bool = False,
    progress: Callable[[Progress], None] | bool = True,
    mesh: Any = None,
) -> tuple[Operator, TrainingReport]:
    """Learn an operator for a model; returns the best one seen and how training went.

    `minutes` is the budget (or `settings`, which has all of them). `operator` is "residual", a correction to the
    training-free flow; "general", the map learned once for every model; "informed"; "paper"; a trained operator to go
    on from; or "auto", whichever of the first two (with two static unknowns of the first and `pretrained("static-2d")`)
    is better on the held-out tasks before training. `architecture` holds settings of the network and of the solver.
    `objective` is what a step lowers: "elbo", the paper's; "continuity", cheaper; "prequential", from data alone; or
    one of your own (`training.objectives`). Tasks are streams of the model, or come from `family`, a law over tasks of
    models like it; those for validation from `validation_family`, where they must not share data with training. Every
    `validate_every` steps the operator is judged on the validation set and, where `checkpoint` names a file, all that
    is needed to go on is written there; `resume` goes on from it. Ctrl-C returns the best so far.
    `mesh`, of JAX's devices or "all", divides the tasks of a step among devices, those of other processes too; then the
    first process reads and writes the checkpoint, and tells how it goes.
    """
    if settings is not None and not isinstance(settings, TrainingSettings):
        raise InputError(f"`settings` must be pfbr.TrainingSettings(…); got {type(settings).__name__}.")
    if not isinstance(architecture or {}, dict):
        raise InputError(f"`architecture` must be a dict of settings; got {shortened(architecture)}.")
    if not isinstance(checkpoint, str | os.PathLike | None):
        raise InputError(f"`checkpoint` must be a path; got {shortened(checkpoint)}.")
    settings = settings or TrainingSettings(minutes=minutes)
    if minutes is not None and settings.minutes != minutes:
        settings = dataclasses.replace(settings, minutes=minutes)
    key, mesh = checked_key(key), checked_mesh(mesh)
    model = _trainable(model)
    settings.check_memory(int(model.dim))
    if isinstance(model, StateSpaceModel) and (settings.segments > 1 or settings.priors != "model"):
        raise InputError("segments and generative priors are for models without dynamics.")
    family = family or ModelFamily(model)
    build_key, validation_key, run_key, reference_key = jax.random.split(key, 4)
    by_predictions = objective == "prequential" or isinstance(objective, PrequentialObjective)
    held = functools.cache(
        lambda: _validation_set(validation_key, validation_family or family, settings, by_predictions)
    )
    score = lambda operator: float(validate(jax.random.split(run_key)[1], operator, held(), mesh))
    design, fresh = starting_operator(build_key, operator, model, architecture or {}, score)
    weights = eqx.filter(fresh, eqx.is_inexact_array)
    if not jax.tree.leaves(weights):
        raise InputError(f'the {design.name} operator has nothing to learn: use method="gaussian" as it is.')
    chosen = _objective(objective, family, settings, fresh, model)  # refuses before anything is computed
    identity = {
        "architecture": to_json(design),
        "objective": chosen.name,
        "settings": dataclasses.asdict(settings),
        "seed": np.asarray(jax.random.key_data(key)).tolist(),
        "model": f"{type(model).__module__}.{type(model).__qualname__}",
        "model_fields": _fields_of(model),
        "family": type(family).__name__,
    }
    state = TrainingState(fresh, optimiser(settings).init(weights), fresh, 0, 0.0, math.inf, 0, [])
    if resume:
        if checkpoint is None:
            raise InputError("`resume` needs `checkpoint`, the file to go on from.")
        state = read_state(checkpoint, state, identity, mesh)
    report = progress if callable(progress) else (text_bar() if progress else lambda _: None)
    written = checkpoint if leads(mesh) else None
    report = report if leads(mesh) else lambda _: None
    with contextlib.nullcontext() if written is None else locks.held(written):
        validation = held()
        try:
            for reached in _states(run_key, state, chosen, validation, report, mesh):
                state = reached  # kept when Ctrl-C ends the loop
                if written is not None and state.step % settings.validate_every == 0:
                    write_state(written, state, identity)
        except KeyboardInterrupt:
            if not math.isfinite(state.best_score):
                raise  # nothing was validated yet: there is no best to keep
        except jax.errors.JaxRuntimeError as error:
            if not several_processes(mesh):
                raise
            raise TrainingError(
                f"another process has ended, or cannot be reached ({shortened(str(error))}): start all of them again, "
                "with `resume` where there is a checkpoint; their number may be another one."
            ) from None
    exact_score = None if validation.exact_score is None else float(jnp.mean(validation.exact_score))
    told = dict(
        identity,
        version=VERSION,
        validation_score=state.best_score,
        exact_score=exact_score,
        steps=state.step,
        seconds=round(state.seconds, 1),
        skipped_tasks=state.skipped,
        history=state.history,
    )
    best = dataclasses.replace(state.best, provenance=Provenance(strict(told)))
    best = with_reference(
        best, learn_reference_statistics(reference_key, best, family, num_particles=settings.num_particles)
    )
    return best, TrainingReport(state.history, state.best_score, exact_score, state.step, state.seconds, state.skipped)


def _states(
    key: Key,
    state: TrainingState,
    objective: Objective,
    held: ValidationSet,
    report: Callable[[Progress], None],
    mesh: Mesh | None,
) -> Iterator[TrainingState]:
    """The state after every step, until the budget is spent. Randomness depends on the step's number alone."""
    settings = objective.settings
    steps_key, validate_key = jax.random.split(key)
    if state.step == 0:
        state = _validated(validate_key, state, held, math.nan, mesh)
    started = time.monotonic() - state.seconds
    loss, skipped_before, judged_at = math.nan, state.skipped, state.step
    while (fraction := _fraction(settings, state)) < 1:
        learning_rate = settings.learning_rate * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * fraction)))
        step_key = jax.random.fold_in(steps_key, state.step)
        moved, optimiser_state, loss, skipped = train_step(
            step_key, objective, state.operator, state.optimiser, jnp.asarray(learning_rate), mesh
        )
        loss = float(loss)  # waits for the step: the clock below is honest
        state = state._replace(
            operator=moved,
            optimiser=optimiser_state,
            step=state.step + 1,
            seconds=float(from_first(mesh, np.asarray(time.monotonic() - started))),  # all end at the same step
            skipped=state.skipped + int(skipped),
        )
        if state.step % settings.validate_every == 0 or _fraction(settings, state) >= 1:
            state = _validated(validate_key, state, held, loss, mesh)
            tried = settings.batch * (state.step - judged_at)
            if state.skipped - skipped_before > settings.max_skipped * tried:
                raise TrainingError(
                    f"{state.skipped - skipped_before} of the last {tried} tasks had a loss or gradient that is not "
                    "finite. Does `log_likelihood` stay finite for every x that the prior can draw? A smaller "
                    "`learning_rate`, or more solver steps, may help too."
                )
            skipped_before, judged_at = state.skipped, state.step
        used = _fraction(settings, state)
        report(
            Progress(
                state.step,
                used,
                loss,
                state.history[-1]["score"],
                state.best_score,
                held.draws is not None,
                state.seconds,
                state.seconds * (1 - used) / max(used, 1e-9),
                state.skipped,
            )
        )
        yield state
    if state.step == 0 or not state.history:
        yield state


def _validated(key: Key, state: TrainingState, held: ValidationSet, loss: float, mesh: Mesh | None) -> TrainingState:
    """Judge the operator on the held-out tasks, always with the same draws; the untrained one is judged too, so that
    training can only improve on where it began."""
    score = float(validate(key, state.operator, held, mesh))
    entry = {"step": state.step, "seconds": round(state.seconds, 2), "loss": loss, "score": score}
    state = state._replace(history=[*state.history, entry])
    if math.isfinite(score) and score < state.best_score:
        state = state._replace(best=state.operator, best_score=score)
    return state


def _fraction(settings: TrainingSettings, state: TrainingState) -> float:
    """How much of the budget is used: of the steps, or of the time, whichever is further on."""
    by_steps = 0.0 if settings.steps is None else state.step / settings.steps
    return max(by_steps, state.seconds / settings.seconds)


def _objective(
    objective: str | Objective, family: Family, settings: TrainingSettings, operator: Operator, model: Model
) -> Objective:
    """What a step learns from. Generative priors, segments and gradients through stages belong to the ELBO."""
    if isinstance(objective, Objective):
        return objective
    if not isinstance(objective, str) or objective not in OBJECTIVES:
        known = ", ".join(OBJECTIVES)
        raise InputError(f"`objective` must be one of {known}, or an objective; got {shortened(objective)}.")
    if objective == "prequential":
        if settings.priors != "model":
            raise InputError('objective="prequential" starts from the model\'s own prior; use priors="model".')
        return PrequentialObjective(family, settings)
    possible = continuity_applies(operator, model)
    if objective == "continuity" and not possible:
        raise InputError(
            'objective="continuity" needs the residual operator, and a model with dim 2 and no dynamics, whose '
            'posteriors can be sampled on a grid; use objective="elbo".'
        )
    plain = settings.priors == "model" and settings.segments == 1 and not settings.through_stages
    if objective == "elbo" or not (possible and plain):
        return ElboObjective(family, settings)
    return ContinuityObjective(family, settings)


def _validation_set(key: Key, family: Family, settings: TrainingSettings, by_predictions: bool) -> ValidationSet:
    s = settings
    if by_predictions:  # all of a long stream counts, not its first segment alone
        length = s.length * s.segments + 1
        return draw_validation_set(key, family, length, s.validation_tasks, s.num_particles, prequential=True)
    return draw_validation_set(key, family, s.length, s.validation_tasks, s.num_particles)


def _fields_of(model: Model) -> dict[str, Any]:
    """What tells two models of one class apart: numbers as they are, arrays by a checksum of their bytes."""
    found: dict[str, Any] = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(model):
        name = jax.tree_util.keystr(path)
        if isinstance(leaf, bool | int | float | str):
            found[name] = leaf
        elif eqx.is_array(leaf) and not jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            found[name] = hashlib.sha256(np.asarray(leaf).tobytes()).hexdigest()[:16]
    return strict(found)


def _trainable(model: Model) -> Model:
    model = checked_methods_of(checked_model(model))
    if not has_observations(model):
        raise ModelError(
            f"{type(model).__name__} has no `sample_observation(key, x)`, and training draws its tasks with it. Add "
            "the method, or leave `method` out: the default needs no training."
        )
    return model
