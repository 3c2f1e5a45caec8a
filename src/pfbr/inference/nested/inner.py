"""Small particle filters, one for each value of the parameters, whose likelihoods are exact on average.

Sequential quasi-Monte Carlo (Gerber and Chopin 2015) with a look ahead (Pitt and Shephard 1999): particles are
resampled in their order on a line by an even comb, and their noise comes from an even set of points, shifted at random
for every row. Chances are flattened and look at the coming row, noise is a little wider than the model's, and weights
put that right: most of the error comes from rows that few particles explain. Each point by itself is a fair draw, so
that the estimate stays unbiased. A filter is a function of its parameters and its seed: two values of the parameters
with one seed meet the same randomness.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, UInt32

from pfbr.inference.nested.resampling import ancestors
from pfbr.inference.nested.stand_in import StandIn
from pfbr.models.base import Model, StateSpaceModel, offers
from pfbr.models.conditions import Conditions, bind, stays, unbound
from pfbr.particles.qmc import MAX_SOBOL_DIM, sobol_points
from pfbr.typing import Observation, PerParticle, Point, Points

Seeds = UInt32[Array, "n 2"]
OWN, AHEAD = 0.5, 0.5  # powers of a particle's weight, and of its likelihood one row ahead, in the chance to go on
WIDER = 0.2  # by which noise is wider, shared by the dimensions
FLOOR = 20.0  # nats that a look ahead may count against a particle: it could be wrong


class Clouds(eqx.Module):
    """The particles of n filters, and their log weights within each filter."""

    points: Float[Array, "n m d"]
    log_weights: Float[Array, "n m"]


class InnerFilters(eqx.Module):
    """What all filters of a model have in common; `num` particles each."""

    model: StateSpaceModel  # as the user wrote it
    shape: tuple[int, ...] = eqx.field(static=True)  # of an observation
    num: int = eqx.field(static=True)

    def begin(self, thetas: Float[Array, "n p"], seeds: Seeds, start: StandIn) -> Clouds:
        """States before the first row kept: from the prior, or from what stands in for the rows that are gone."""

        def one(theta: Float[Array, " p"], seed: Array) -> Points:
            here = self._at(theta, Conditions())
            key = jax.random.fold_in(jax.random.wrap_key_data(seed), 0)
            normals = self._normals(key)
            if offers(self.model, "prior_from_normal"):
                drawn = jax.vmap(here.prior_from_normal)(normals)
            else:
                drawn = jax.vmap(here.sample_prior)(jax.random.split(key, self.num))
            return jnp.where(start.in_use, start.states(theta, normals), drawn)  # type: ignore[arg-type]

        points = jax.vmap(one)(thetas, seeds)
        return Clouds(points, jnp.full(points.shape[:2], -np.log(self.num), points.dtype))

    def step(
        self,
        thetas: Float[Array, "n p"],
        seeds: Seeds,
        clouds: Clouds,
        number: Int[Array, ""],
        observation: Observation,
        given: Conditions,
    ) -> tuple[Clouds, PerParticle]:
        """The filters after one more row, and log p(row | rows before) as each of them estimates it.

        `number` counts rows from the start of the stream: with the seed, it fixes the randomness of this step.
        """
        keys = jax.vmap(lambda seed: jax.random.fold_in(jax.random.wrap_key_data(seed), number))(seeds)
        guided = offers(self.model, "transition_from_normal")
        # Resample
        chances = OWN * clouds.log_weights
        if guided:
            chances = chances + AHEAD * self._ahead(thetas, clouds.points, observation, given)
        chances = chances - jax.nn.logsumexp(chances, axis=1, keepdims=True)
        shifts = jax.vmap(lambda key: jax.random.uniform(jax.random.fold_in(key, 1)))(keys)
        combs = (jnp.arange(self.num) + shifts[:, None]) / self.num
        chosen = ancestors(clouds.points, jnp.exp(chances), combs)
        parents = jnp.take_along_axis(clouds.points, chosen[..., None], axis=1)
        log_weights = jnp.take_along_axis(clouds.log_weights - chances, chosen, axis=1) - np.log(self.num)

        # Propagate and weigh
        def one(theta: Float[Array, " p"], key: Array, points: Points) -> tuple[Points, Array]:
            here = self._at(theta, given)
            if not guided:
                moved = jax.vmap(here.sample_transition)(jax.random.split(key, self.num), points)
                return moved, jax.vmap(here.log_likelihood, (0, None))(moved, observation)
            normals, wider = self._normals(key), 1 + WIDER / points.shape[1]
            moved = jax.vmap(here.transition_from_normal)(points, wider * normals)  # type: ignore[assignment]
            put_right = jnp.sum(0.5 * (1 - wider**2) * normals**2 + np.log(wider), axis=1)
            still = stays(here)
            put_right = put_right if still is None else jnp.where(still, 0.0, put_right)
            return moved, jax.vmap(here.log_likelihood, (0, None))(moved, observation) + put_right

        moved, values = jax.vmap(one)(thetas, keys, parents)
        log_weights = log_weights + values
        total = jax.nn.logsumexp(log_weights, axis=1)
        alive = jnp.isfinite(total)[:, None]
        log_weights = jnp.where(alive, log_weights - jnp.where(alive, total[:, None], 0.0), -np.log(self.num))
        return Clouds(moved, log_weights), total

    def _ahead(self, thetas: Float[Array, "n p"], points: Array, observation: Observation, given: Conditions) -> Array:
        """Log likelihood of the coming row where each particle goes without noise."""

        def one(theta: Float[Array, " p"], own: Points) -> Array:
            here = self._at(theta, given)
            moved = jax.vmap(lambda x: here.transition_from_normal(x, jnp.zeros_like(x)))(own)
            return jax.vmap(here.log_likelihood, (0, None))(moved, observation)  # type: ignore[arg-type]

        values = jax.vmap(one)(thetas, points)
        values = jnp.where(jnp.isnan(values), -jnp.inf, values)
        top = jnp.max(values, axis=1, keepdims=True)
        return jnp.maximum(values - jnp.where(jnp.isfinite(top), top, 0.0), -FLOOR)

    def _at(self, theta: Float[Array, " p"], row: Conditions) -> StateSpaceModel:
        """The model with these parameters under the conditions of a row."""
        given = Conditions(row.dt, row.time, row.inputs, row.observed, unravel(self.model)(theta))
        return bind(self.model, given, shape=self.shape)  # type: ignore[return-value]

    def _normals(self, key: Array) -> Points:
        """An even set of normal vectors, shifted at random; its order goes with that of the comb."""
        dim = int(self.model.dim)
        if dim >= MAX_SOBOL_DIM:
            return jax.random.normal(key, (self.num, dim))
        points = sobol_points(self.num, dim + 1)
        ordered = points[np.argsort(points[:, 0], kind="stable"), 1:]
        unit = jnp.mod(jnp.asarray(ordered, jnp.float32) + jax.random.uniform(key, (dim,), jnp.float32), 1.0)
        return jax.scipy.special.ndtri(jnp.clip(unit, 2.0**-24, 1.0 - 2.0**-24)).astype(jnp.result_type(float))


def unravel(model: Model) -> Callable[[Point], Any]:
    """From a flat vector to the model's parameters."""
    example = jax.eval_shape(unbound(model).sample_parameters, jax.random.key(0))  # type: ignore[attr-defined]
    zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, jnp.result_type(float)), example)
    return ravel_pytree(zeros)[1]
