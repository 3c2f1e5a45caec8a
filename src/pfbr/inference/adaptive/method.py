"""The default method: weigh where that is enough, flow where that is all but exact, temper the rest."""

from typing import Any

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array

from pfbr.errors import InputError
from pfbr.inference.adaptive.rows import Row, row_likelihood, row_of
from pfbr.inference.adaptive.static.adaptive import init as static_init
from pfbr.inference.adaptive.static.adaptive import step as static_step
from pfbr.inference.adaptive.static.adaptive import weigh as static_weigh
from pfbr.inference.adaptive.static.target import Target
from pfbr.inference.info import Info, Move
from pfbr.inference.method import Method
from pfbr.models.base import Model
from pfbr.models.conditions import observation_shape
from pfbr.particles.particles import Particles
from pfbr.particles.qmc import draw_prior
from pfbr.typing import Key, Observation

STATIC_MOVES = jnp.array([Move.WEIGHED, Move.FLOW, Move.TEMPERED])


class Adaptive(Method):
    """`history` rows are kept for static unknowns; 0: none."""

    history: int = eqx.field(static=True, default=4096)

    def init(self, key: Key, model: Model, num_particles: int) -> Any:
        points = draw_prior(key, model, num_particles)
        return static_init(key, points, self._example(model), history=self.history)

    def update(self, key: Key, model: Model, state: Any, observation: Observation) -> tuple[Any, Info]:
        target, row = self._target(model), row_of(model, observation)
        after, said = static_step(key, target, state, row)
        return after, _info(target, state, row, said)

    def weigh(self, key: Key, model: Model, state: Any, observation: Observation) -> tuple[Any, Info, Array]:
        target, row = self._target(model), row_of(model, observation)
        after, said, enough = static_weigh(target, state, row)
        return after, _info(target, state, row, said), enough & (state.past.count < state.past.capacity)

    def particles(self, state: Any) -> Particles:
        return Particles(state.points, state.log_weights)

    def _target(self, model: Model) -> Target:
        return Target(model.log_prior, row_likelihood(model))

    def _example(self, model: Model) -> Row:
        shape = observation_shape(model)
        if shape is None:
            raise InputError(
                f"{type(model).__name__} does not tell the shape of an observation before one has come: update first, "
                "or add `sample_observation(key, x)`."
            )
        return row_of(model, jnp.zeros(shape))


def _info(target: Target, before: Any, row: Row, said: Any) -> Info:
    values = jax.vmap(lambda x: target.log_likelihood(x, row))(before.points)
    return Info(
        ess=said.ess,
        pareto_k=said.pareto_k,
        log_predictive=said.log_predictive,
        flagged=said.flagged,
        exact=said.exact,
        move=STATIC_MOVES[said.move],
        undefined=jnp.mean(jnp.isnan(values)),
        details={name: getattr(said, name) for name in ("acceptance", "stages", "moves", "error", "rejuvenations")},
    )
