"""The rows kept, what stands in for those before them, and a fit that will once the buffer is full.

The buffer has an even number of rows. Halfway a fit is taken; when the buffer is full the rows up to that fit go, and
the fit stands for them. So at least half of the buffer is always there to judge parameters by.
"""

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Float, Int

from pfbr.inference.history import Rows, empty_history
from pfbr.inference.nested.inner import Clouds, InnerFilters, Seeds, unravel
from pfbr.inference.nested.stand_in import StandIn, no_stand_in
from pfbr.models.base import Model
from pfbr.models.conditions import Conditions, bind, conditions_of, unbound
from pfbr.typing import Observation, PerParticle, Points, Scalar


class KeptRows(eqx.Module):
    """`count` rows after `start`; `first` is the number of the first of them, from 1. `reference` is what each row
    added to the log evidence: likelihoods count relative to it, so that their sums stay small."""

    rows: Rows
    reference: Float[Array, " t"]
    count: Int[Array, ""]
    first: Int[Array, ""]
    start: StandIn
    halfway: StandIn
    fitted_at: Int[Array, ""]  # how many of the rows `halfway` has seen

    @property
    def capacity(self) -> int:
        return self.reference.shape[0]

    @property
    def next_number(self) -> Int[Array, ""]:
        return self.first + self.count

    @property
    def due(self) -> Array:
        """Whether a fit is to be taken now."""
        return (self.fitted_at == 0) & (self.count >= self.capacity // 2)

    def append(self, model: Model, observation: Observation, reference: Scalar) -> "KeptRows":
        """One more row, under the conditions that the model is bound to."""
        given = conditions_of(model)
        seen = jnp.ones(jnp.shape(observation), bool) if given.observed is None else jnp.asarray(given.observed)
        dt = jnp.ones(()) if given.dt is None else given.dt  # as an empty buffer has it
        one = Rows(jnp.asarray(observation), Conditions(dt, given.time, given.inputs, seen))
        rows = jax.tree.map(lambda buffer, new: buffer.at[self.count].set(new), self.rows, one)
        return eqx.tree_at(
            lambda k: (k.rows, k.reference, k.count),
            self,
            (rows, self.reference.at[self.count].set(reference), self.count + 1),
        )

    def with_room(self) -> "KeptRows":
        """The same, but for a full buffer: then without the rows that the fit has seen."""

        def dropped(kept: "KeptRows") -> "KeptRows":
            gone = kept.fitted_at
            later = jnp.minimum(jnp.arange(kept.capacity) + gone, kept.capacity - 1)
            rows, reference = jax.tree.map(lambda buffer: buffer[later], (kept.rows, kept.reference))
            zero = jnp.zeros_like(gone)
            return KeptRows(rows, reference, kept.count - gone, kept.first + gone, kept.halfway, kept.halfway, zero)

        return jax.lax.cond(self.count >= self.capacity, dropped, lambda kept: kept, self)

    def with_fit(self, fit: StandIn) -> "KeptRows":
        return eqx.tree_at(lambda k: (k.halfway, k.fitted_at), self, (fit, self.count))

    def corrected(self, amount: Scalar) -> "KeptRows":
        """With another log evidence of the last row."""
        return eqx.tree_at(lambda k: k.reference, self, self.reference.at[self.count - 1].add(amount))

    def replayed(self, filters: InnerFilters, thetas: Points, seeds: Seeds) -> tuple[Clouds, PerParticle]:
        """Filters run over all rows kept: their states, and the log likelihoods relative to the references."""

        def include(i, carry):
            clouds, total = carry
            row = jax.tree.map(lambda leaf: leaf[i], self.rows)
            clouds, gained = filters.step(thetas, seeds, clouds, self.first + i, row.observations, row.conditions)
            return clouds, total + (gained - self.reference[i])

        begun = (filters.begin(thetas, seeds, self.start), jnp.zeros(thetas.shape[0], thetas.dtype))
        clouds, total = jax.lax.fori_loop(0, self.count, include, begun)
        points = jnp.where(jnp.isfinite(clouds.points), clouds.points, 0.0)
        return Clouds(points, clouds.log_weights), jnp.where(jnp.isnan(total), -jnp.inf, total)


def no_rows(model: Model, capacity: int, size: int) -> KeptRows:
    """An empty buffer for rows such as the one that the model is bound to, and `size` parameters."""
    given, params = conditions_of(model), unravel(model)(jnp.zeros(size))  # an observation may be made of parameters
    example = Conditions(given.dt, given.time, given.inputs, given.observed, params)
    rows = empty_history(bind(unbound(model), example, shape=getattr(model, "shape", None)), capacity).stored
    seen = rows.conditions
    rows = Rows(rows.observations, Conditions(seen.dt, seen.time, seen.inputs, seen.observed))
    zero = jnp.zeros((), jnp.int32)
    none = no_stand_in(int(model.dim), size)
    return KeptRows(rows, jnp.zeros(capacity, jnp.result_type(float)), zero, zero + 1, none, none, zero)
