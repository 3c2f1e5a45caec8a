"""A batch given to a method one member at a time: for methods that lose their particles to much information at once."""

from typing import Any

import jax

from pfbr.inference.info import Info
from pfbr.inference.method import Method
from pfbr.models.base import Model
from pfbr.models.conditions import Conditions, bind, conditions_of, unbound
from pfbr.models.minibatch import MiniBatch
from pfbr.particles.particles import Particles
from pfbr.typing import Key, Observation


class OneByOne(Method):
    """`method` on the members of each batch in turn; the posterior after the last one is that of the batch."""

    method: Method

    def init(self, key: Key, model: Model, num_particles: int) -> Any:
        first = jax.tree.map(lambda leaf: leaf[0], _of_members(model))
        return self.method.init(key, bind(_single(model), first), num_particles)

    def update(self, key: Key, model: Model, state: Any, observation: Observation) -> tuple[Any, Info]:
        def advance(state, inputs):
            step_key, member, conditions = inputs
            return self.method.update(step_key, bind(_single(model), conditions), state, member)

        keys = jax.random.split(key, observation.shape[0])
        state, infos = jax.lax.scan(advance, state, (keys, observation, _of_members(model)))
        return state, jax.tree.map(lambda leaf: leaf[-1], infos)

    def particles(self, state: Any) -> Particles:
        return self.method.particles(state)

    def unsupported(self, model: Model) -> str | None:
        if not isinstance(unbound(model), MiniBatch):
            return "its observations are no batches: use the method itself."
        return self.method.unsupported(_single(model))


def _single(model: Model) -> Model:
    """The model of one member."""
    batched = unbound(model)
    assert isinstance(batched, MiniBatch)  # `unsupported` says so
    return batched.model


def _of_members(model: Model) -> Conditions:
    """What came with each member, along the first axis; a batch knows no elapsed times."""
    given = conditions_of(model)
    return Conditions(None, given.time, given.inputs, given.observed)
