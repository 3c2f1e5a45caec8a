"""The untouched prior: what a score looks like when observations are ignored; the far end of every scale."""

from pfbr.baselines import edge
from pfbr.inference.info import Info
from pfbr.inference.method import Method
from pfbr.models.base import Model
from pfbr.particles.particles import Particles, equally_weighted
from pfbr.typing import Key, Observation


class Prior(Method):
    """Draws of the prior, moved by the dynamics where there are any."""

    def init(self, key: Key, model: Model, num_particles: int) -> Particles:
        edge.accept(self, model, num_particles)
        return equally_weighted(edge.prior_points(key, model, num_particles))

    def update(self, key: Key, model: Model, state: Particles, observation: Observation) -> tuple[Particles, Info]:
        edge.accept_observation(model, observation)
        return equally_weighted(edge.predict(key, model, state.points)), Info()

    def particles(self, state: Particles) -> Particles:
        return state
