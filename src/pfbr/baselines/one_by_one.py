"""A batch given to a method one member at a time: for methods that lose their particles to much information at once."""

from typing import Any

import jax

from pfbr.inference.info import Info
from pfbr.inference.method import Method
from pfbr.models.base import Model
from pfbr.models.minibatch import MiniBatch
from pfbr.particles.particles import Particles
from pfbr.typing import Key, Observation


class OneByOne(Method):
    """`method` on the members of each batch in turn; the posterior after the last one is that of the batch."""

    method: Method

    def init(self, key: Key, model: Model, num_particles: int) -> Any:
        return self.method.init(key, _single(model), num_particles)

    def update(self, key: Key, model: Model, state: Any, observation: Observation) -> tuple[Any, Info]:
        def advance(state, inputs):
            step_key, member = inputs
            return self.method.update(step_key, _single(model), state, member)

        state, infos = jax.lax.scan(advance, state, (jax.random.split(key, observation.shape[0]), observation))
        return state, jax.tree.map(lambda leaf: leaf[-1], infos)

    def particles(self, state: Any) -> Particles:
        return self.method.particles(state)

    def unsupported(self, model: Model) -> str | None:
        if not isinstance(model, MiniBatch):
            return "its observations are no batches: use the method itself."
        return self.method.unsupported(model.model)


def _single(model: Model) -> Model:
    assert isinstance(model, MiniBatch)  # `unsupported` says so
    return model.model
