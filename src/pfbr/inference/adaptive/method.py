"""The default method: weigh where that is enough, flow where that is all but exact, temper the rest."""

from typing import Any

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array

from pfbr.errors import InputError
from pfbr.inference.adaptive.filter.model import filter_model
from pfbr.inference.adaptive.filter.settings import Settings as FilterSettings
from pfbr.inference.adaptive.filter.step import FilterInfo, FilterState
from pfbr.inference.adaptive.filter.step import init as filter_init
from pfbr.inference.adaptive.filter.step import step as filter_step
from pfbr.inference.adaptive.filter.step import weigh as filter_weigh
from pfbr.inference.adaptive.rows import Row, row_likelihood, row_of, same_rows
from pfbr.inference.adaptive.static.past import Past
from pfbr.inference.adaptive.static.rejuvenation import rejuvenate
from pfbr.inference.adaptive.static.state import StaticSettings, StaticState
from pfbr.inference.adaptive.static.state import init as static_init
from pfbr.inference.adaptive.static.step import make_room as static_make_room
from pfbr.inference.adaptive.static.step import move_back as static_move_back
from pfbr.inference.adaptive.static.step import retract as static_retract
from pfbr.inference.adaptive.static.step import step as static_step
from pfbr.inference.adaptive.static.step import weigh_back as static_weigh_back
from pfbr.inference.adaptive.static.target import Target
from pfbr.inference.adaptive.static.weighing import begin as static_begin
from pfbr.inference.adaptive.static.weighing import weigh as static_weigh
from pfbr.inference.info import Info, Move
from pfbr.inference.method import Method
from pfbr.models.base import Model, StateSpaceModel
from pfbr.models.conditions import Conditions, bind, conditions_of, observation_shape, unbound
from pfbr.models.inverse_likelihood import InverseLikelihood
from pfbr.particles.particles import Particles
from pfbr.particles.qmc import draw_prior
from pfbr.typing import Key, Observation

STATIC_MOVES = (Move.WEIGHED, Move.FLOW, Move.TEMPERED, Move.FLOW)
FILTER_MOVES = (Move.WEIGHED, Move.FLOW, Move.TEMPERED, Move.SECOND_LOOK, Move.OVERSAMPLED)
STATIC_DETAILS = ("acceptance", "stages", "moves", "error", "misfit", "drift", "rejuvenations")
FILTER_DETAILS = ("acceptance", "rounds", "width", "surprised", "error", "beyond", "learned")


class Adaptive(Method):
    """For static unknowns `history` rows are kept, so that targets are exact; 0: none. Filters keep the last few
    reports, for a second look when an observation surprises the whole cloud."""

    history: int = eqx.field(static=True, default=4096)
    static: StaticSettings = StaticSettings()
    filter: FilterSettings = FilterSettings()

    def init(self, key: Key, model: Model, num_particles: int) -> Any:
        example = self._example(model)
        if isinstance(model, StateSpaceModel):
            return filter_init(
                key,
                filter_model(model),
                num_particles,
                observation=example.observation,
                conditions=example.conditions,
                settings=self.filter,
            )
        begun = static_init(key, draw_prior(key, model, num_particles), example, history=self.history)
        return static_begin(self._target(model), begun)

    def update(self, key: Key, model: Model, state: Any, observation: Observation) -> tuple[Any, Info]:
        row = row_of(model, observation)
        if isinstance(model, StateSpaceModel):
            moved, told = filter_step(key, filter_model(model), state, row.observation, **self._told(row))
            return moved, _filter_info(told)
        target = self._target(model)
        if _taken_back(model):
            after, said = static_retract(key, target, state, _place(state.past, row), self.static)
        else:
            after, said = static_step(key, target, state, row, self.static)
        return after, _static_info(target, state, row, said)

    def weigh(self, key: Key, model: Model, state: Any, observation: Observation) -> tuple[Any, Info, Array] | None:
        row = row_of(model, observation)
        if isinstance(model, StateSpaceModel):
            weighed, told, fine = filter_weigh(key, filter_model(model), state, row.observation, **self._told(row))
            return weighed, _filter_info(told), fine
        target = self._target(model)
        if _taken_back(model):
            after, said, enough = static_weigh_back(target, state, _place(state.past, row), self.static)
            return after, _static_info(target, state, row, said), enough
        after, said, enough = static_weigh(target, state, row, self.static)
        roomy = (state.past.count < state.past.capacity) | (self.history == 0)  # else the oldest rows have to go first
        return after, _static_info(target, state, row, said), enough & roomy

    def move(self, key: Key, model: Model, state: Any, observation: Observation) -> tuple[Any, Info]:
        if isinstance(model, StateSpaceModel):
            return self.update(key, model, state, observation)
        row, target = row_of(model, observation), self._target(model)
        if _taken_back(model):
            after, said = static_move_back(key, target, state, _place(state.past, row), self.static)
        else:
            after, said = rejuvenate(key, target, state, row, self.static)
        return after, _static_info(target, state, row, said)

    def is_full(self, state: Any) -> bool:
        return isinstance(state, StaticState) and 0 < state.past.capacity <= int(state.past.count)

    def make_room(self, model: Model, state: Any) -> Any:
        return static_make_room(self._target(model), state)

    def particles(self, state: Any) -> Particles:
        if isinstance(state, FilterState):
            return Particles(state.cloud.points, state.cloud.log_weights)
        return Particles(state.points, state.log_weights)

    def cannot_downdate(self) -> str | None:
        return None if self.history else "a session that keeps no rows (`history=0`) cannot"

    def remembers(self, state: Any, row: Any) -> bool:
        """Whether the row is among those kept."""
        shape = jnp.shape(row.observation)
        observed = jnp.ones(shape, bool) if row.observed is None else jnp.asarray(row.observed)
        dtype = jnp.result_type(float)
        inputs = jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), row.inputs)
        wanted = Row(jnp.asarray(row.observation, dtype), Conditions(inputs=inputs, observed=observed))
        return bool(jnp.any(_kept(state.past, wanted)))

    def _told(self, row: Row) -> dict[str, Any]:
        """What a filter is told besides the observation."""
        dt = jnp.ones((), row.observation.dtype) if row.conditions.dt is None else row.conditions.dt
        return {"dt": dt, "conditions": row.conditions, "settings": self.filter}

    def _target(self, model: Model) -> Target:
        inner = unbound(model)
        if isinstance(inner, InverseLikelihood):
            model = bind(inner.model, conditions_of(model), shape=getattr(model, "shape", None))
        return Target(model.log_prior, row_likelihood(model), lambda key, num: draw_prior(key, model, num))

    def _example(self, model: Model) -> Row:
        shape = observation_shape(model)
        if shape is None:
            raise InputError(
                f"{type(model).__name__} does not tell the shape of an observation before one has come: update first, "
                "or add `sample_observation(key, x)`."
            )
        return row_of(model, jnp.zeros(shape))


def _taken_back(model: Model) -> bool:
    """Whether the observation is one that came earlier."""
    return isinstance(unbound(model), InverseLikelihood)


def _kept(past: Past, row: Row) -> Array:
    return same_rows(past.rows, row) & (jnp.arange(past.capacity) < past.count)


def _place(past: Past, row: Row) -> Array:
    """Of the first kept row like this one; the caller knows that there is one."""
    return jnp.argmax(_kept(past, row))


def _filter_info(said: FilterInfo) -> Info:
    return Info(
        ess=said.ess,
        pareto_k=said.pareto_k,
        log_predictive=said.log_predictive,
        flagged=said.flagged,
        move=jnp.asarray(FILTER_MOVES, jnp.int32)[said.move],
        undefined=said.undefined,
        details={name: getattr(said, name) for name in FILTER_DETAILS},
    )


def _static_info(target: Target, before: Any, row: Row, said: Any) -> Info:
    values = jax.vmap(lambda x: target.log_likelihood(x, row))(before.points)
    return Info(
        ess=said.ess,
        pareto_k=said.pareto_k,
        log_predictive=said.log_predictive,
        flagged=said.flagged,
        exact=said.exact,
        move=jnp.asarray(STATIC_MOVES, jnp.int32)[said.move],
        undefined=jnp.mean(jnp.isnan(values)),
        details={name: getattr(said, name) for name in STATIC_DETAILS},
    )
