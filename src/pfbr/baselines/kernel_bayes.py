"""Kernel Bayes' rule: the posterior as a weighted sum of features of simulated pairs, by linear algebra alone.

Follows Fukumizu, Song and Gretton, "Kernel Bayes' rule: Bayesian inference with positive definite kernels" (2013), and
for equal weights the kernel herding of Chen, Welling and Smola, "Super-samples from kernel herding" (2010). The
likelihood is never evaluated: pairs (X_i, Y_i) are drawn from the model once, and the rest is Gram matrices.
"""

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from pfbr.baselines import edge
from pfbr.errors import InputError
from pfbr.inference.info import Info
from pfbr.inference.method import Method
from pfbr.models.base import Model, StateSpaceModel, has_observations
from pfbr.models.conditions import conditions_of, unbound
from pfbr.models.needs import needs
from pfbr.particles.density import squared_distances
from pfbr.particles.particles import Particles, equally_weighted
from pfbr.typing import Key, Observation, Points, Real

Weights = Float[Array, " n"]


class Pairs(eqx.Module):
    """Simulated unknowns with an observation each, their next states, and the Gram matrices between them."""

    x: Points
    moved: Points
    y: Float[Array, "n k"]
    x_scale: Float[Array, " d"]
    y_scale: Float[Array, " k"]
    gram_x: Float[Array, "n n"]
    gram_y: Float[Array, "n n"]


class KernelBayesState(eqx.Module):
    """Signed weights on the simulated unknowns, and the equally weighted points that stand for them."""

    pairs: Pairs
    weights: Weights
    herded: Particles


class KernelBayes(Method):
    """μ = (G_X + n ε I)⁻¹ G_XU γ, Λ = diag μ, w = Λ G_Y ((Λ G_Y)² + δ I)⁻¹ Λ k_Y(o).

    γ on U is the last posterior, moved by the dynamics where there are any. `num_pairs` draws stand for the prior;
    `bandwidth` is in units of the median distance; ε = `smoothing`, δ = `regularisation`: choose the three with `tune`.
    """

    num_pairs: int = eqx.field(static=True, default=400)
    bandwidth: Real = 1.0
    smoothing: Real = 1e-2
    regularisation: Real = 1e-2

    def init(self, key: Key, model: Model, num_particles: int) -> KernelBayesState:
        edge.accept(self, model, num_particles)
        pairs = simulate_pairs(key, model, self.num_pairs, self.bandwidth)
        weights = jnp.full(self.num_pairs, 1.0 / self.num_pairs)
        return KernelBayesState(pairs, weights, _herded(pairs, weights, num_particles))

    def update(self, key: Key, model: Model, state: KernelBayesState, observation: Observation):
        observation = edge.accept_observation(model, observation)
        pairs = state.pairs
        cross = rbf_gram(pairs.x, pairs.moved, pairs.x_scale)
        mu = embed(pairs, cross @ state.weights, self.smoothing)
        weights = condition(pairs, mu, observation, self.regularisation, conditions_of(model).observed)
        herded = _herded(pairs, weights, state.herded.num_particles)
        return KernelBayesState(pairs, weights, herded), Info(ess=signed_ess(weights))

    def particles(self, state: KernelBayesState) -> Particles:
        return state.herded

    def unsupported(self, model: Model) -> str | None:
        if isinstance(model, StateSpaceModel) and needs(unbound(model), "sample_transition"):
            return "its pairs move once, when they are simulated, and this model moves otherwise each time; use `kmcf`."
        return needs_simulation(model)


def simulate_pairs(key: Key, model: Model, num: int, bandwidth: Real) -> Pairs:
    """Unknowns from the prior (spread over time where they move), observations of them, and one more move each."""
    if num < 2:
        raise InputError(f"`num_pairs` must be at least 2; got {num}.")
    prior_key, walk_key, observe_key, move_key = jax.random.split(key, 4)
    x = edge.prior_points(prior_key, model, num)
    walk = 8  # pairs from several times cover where a moving unknown goes, not only where it starts

    def wander(points, indexed):
        step, step_key = indexed
        moved = edge.predict(step_key, model, points)
        return jnp.where((jnp.arange(num) % walk >= step)[:, None], moved, points), None

    x, _ = jax.lax.scan(wander, x, (jnp.arange(walk), jax.random.split(walk_key, walk)))
    y = jax.vmap(model.sample_observation)(jax.random.split(observe_key, num), x).reshape(num, -1)
    x_scale, y_scale = bandwidth * _median_scale(x), bandwidth * _median_scale(y)
    moved = edge.predict(move_key, model, x)
    return Pairs(x, moved, y, x_scale, y_scale, rbf_gram(x, x, x_scale), rbf_gram(y, y, y_scale))


def _median_scale(points: Points) -> Float[Array, " d"]:
    """Standard deviations, stretched so that the median distance between two points is one."""
    std = jnp.std(points, axis=0) + 1e-12
    distances = jnp.sqrt(squared_distances(points / std, points / std))
    return std * jnp.maximum(jnp.median(distances), 1e-6)


def rbf_gram(a: Points, b: Float[Array, "m d"], scale: Float[Array, " d"]) -> Float[Array, "n m"]:
    """exp(−½ ‖(a − b) / scale‖²)"""
    return jnp.exp(-0.5 * squared_distances(a / scale, b / scale))


def embed(pairs: Pairs, values: Weights, smoothing: Real) -> Weights:
    """Weights on the simulated unknowns for an embedding known by its values at them."""
    n = values.shape[0]
    return jnp.linalg.solve(pairs.gram_x + n * smoothing * jnp.eye(n), values)


def condition(
    pairs: Pairs, mu: Weights, observation: Observation, regularisation: Real, observed: Bool[Array, "..."] | None
) -> Weights:
    """Kernel Bayes' rule for a prior with weights μ; the answer sums to one and may be negative in places.

    What was not `observed` is left out of both kernels, as if pairs had no such component.
    """
    n = mu.shape[0]
    gram_y, y_scale = pairs.gram_y, pairs.y_scale
    if observed is not None:
        y_scale = jnp.where(observed.reshape(-1), y_scale, jnp.inf)
        gram_y = rbf_gram(pairs.y, pairs.y, y_scale)
    weighed = mu[:, None] * gram_y
    seen = rbf_gram(pairs.y, observation.reshape(1, -1), y_scale)[:, 0]
    w = weighed @ jnp.linalg.solve(weighed @ weighed + regularisation * jnp.eye(n), mu * seen)
    total = jnp.sum(w)
    return w / jnp.where(jnp.abs(total) > 1e-6, total, 1.0)


def herd(gram: Float[Array, "n n"], weights: Weights, num: int) -> Int[Array, " num"]:
    """Indices of `num` points whose equal-weight embedding follows the weighted one, chosen greedily."""
    values = gram @ weights

    def choose(carry, i):
        taken = carry
        best = jnp.argmax(values - taken / (i + 1.0))
        return taken + gram[best], best

    return jax.lax.scan(choose, jnp.zeros_like(values), jnp.arange(num))[1]


def _herded(pairs: Pairs, weights: Weights, num: int) -> Particles:
    return equally_weighted(pairs.x[herd(pairs.gram_x, weights, num)])


def signed_ess(weights: Weights) -> Array:
    """(Σ w)² / Σ w², for weights that may be negative."""
    return jnp.sum(weights) ** 2 / jnp.sum(weights**2)


def needs_simulation(model: Model) -> str | None:
    """The reason to refuse a model that cannot draw observations, or draws each from another law, or None."""
    if not has_observations(model):
        return "it learns from simulated observations: add `sample_observation(key, x)` to the model."
    changing = sorted(set(needs(unbound(model), "sample_observation")) - {"params"})
    if changing:
        return (
            f"it learns from pairs simulated once, and `sample_observation` names {', '.join(changing)}: every "
            "observation would need new ones; use IBIS or BootstrapSMC."
        )
    return None
