"""The kernel Monte Carlo filter: move particles by the dynamics, correct them by kernel Bayes' rule, herd, repeat.

Follows Kanagawa, Nishiyama, Gretton and Fukumizu, "Filtering with state-observation examples via kernel Monte Carlo
filter" (2016): unlike kernel Bayes' rule throughout, prediction samples the dynamics, and herding renews the particles.
"""

import equinox as eqx
import jax
from jax import numpy as jnp

from pfbr.baselines import edge
from pfbr.baselines.kernel_bayes import (
    KernelBayesState,
    condition,
    embed,
    herd,
    needs_simulation,
    rbf_gram,
    signed_ess,
    simulate_pairs,
)
from pfbr.inference.info import Info
from pfbr.inference.method import Method
from pfbr.models.base import Model
from pfbr.models.conditions import conditions_of
from pfbr.particles.particles import Particles, equally_weighted
from pfbr.typing import Key, Observation, Real


class KernelFilter(Method):
    """Particles x̃ ~ p(· | x); μ = (G_X + n ε I)⁻¹ G_Xx̃ 1/N; weights on the pairs by kernel Bayes' rule; herding.

    The settings mean what they mean for `KernelBayes`; choose them with `tune`.
    """

    num_pairs: int = eqx.field(static=True, default=400)
    bandwidth: Real = 1.0
    smoothing: Real = 1e-2
    regularisation: Real = 1e-2

    def init(self, key: Key, model: Model, num_particles: int) -> KernelBayesState:
        edge.accept(self, model, num_particles)
        pairs_key, prior_key = jax.random.split(key)
        pairs = simulate_pairs(pairs_key, model, self.num_pairs, self.bandwidth)
        start = equally_weighted(edge.prior_points(prior_key, model, num_particles))
        return KernelBayesState(pairs, jnp.full(self.num_pairs, 1.0 / self.num_pairs), start)

    def update(self, key: Key, model: Model, state: KernelBayesState, observation: Observation):
        observation = edge.accept_observation(model, observation)
        pairs = state.pairs
        predicted = edge.predict(key, model, state.herded.points)
        values = jnp.mean(rbf_gram(pairs.x, predicted, pairs.x_scale), axis=1)
        mu, observed = embed(pairs, values, self.smoothing), conditions_of(model).observed
        weights = condition(pairs, mu, observation, self.regularisation, observed)
        herded = equally_weighted(pairs.x[herd(pairs.gram_x, weights, predicted.shape[0])])
        return KernelBayesState(pairs, weights, herded), Info(ess=signed_ess(weights))

    def particles(self, state: KernelBayesState) -> Particles:
        return state.herded

    def unsupported(self, model: Model) -> str | None:
        return needs_simulation(model)
