"""Parameters beside a state: weighed while enough of them count, else drawn anew, else moved.

Every value of the parameters has a small filter of its own, whose estimate of p(row | rows before, θ) is the row's
likelihood of θ (SMC squared). The filters' noise cancels out: the law of θ is exact for any number of inner particles.
Once rows are gone a fit of parameters and state stands for them: `info.exact` then says so.
"""

from typing import Any

import equinox as eqx
import jax
from jax import numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from pfbr.inference.info import Info, Move
from pfbr.inference.method import Method
from pfbr.inference.nested.cloud import OuterCloud, fresh_seeds
from pfbr.inference.nested.importance import renewed
from pfbr.inference.nested.inner import InnerFilters, unravel
from pfbr.inference.nested.kept import KeptRows, no_rows
from pfbr.inference.nested.metropolis import moved
from pfbr.inference.nested.stand_in import fitted
from pfbr.inference.nested.states import one_state_each
from pfbr.models.base import Model, has_parameters
from pfbr.models.conditions import conditions_of, unbound
from pfbr.particles.pareto import pareto_k
from pfbr.particles.particles import Particles, ess, normalise
from pfbr.typing import Key, Observation, Scalar

ENOUGH = 0.25  # share of the draws that has to count for a renewed cloud to be taken as it is
TAIL = 0.7  # k-hat of its weights above which it is not
WORN = 0.6  # of the effective sample size after the last renewal, below which there is another one
FRESH = 0.8  # share that has to count for a fit that will stand for the past
WRONG = 0.3  # standard deviations: an error of the mean above it, more likely than not, is flagged


class NestedState(eqx.Module):
    cloud: OuterCloud
    kept: KeptRows
    best: Scalar  # effective sample size after the last renewal


class Nested(Method):
    """`inner` particles for each of the outer ones; the last `history` rows are kept, at most `window`."""

    inner: int = eqx.field(static=True, default=64)
    threshold: float = eqx.field(static=True, default=0.5)
    history: int = eqx.field(static=True, default=4096)
    window: int = eqx.field(static=True, default=1024)  # rows kept at most: all are run again in one renewal

    def init(self, key: Key, model: Model, num_particles: int) -> NestedState:
        parameters_key, seed_key = jax.random.split(key)
        sample = unbound(model).sample_parameters  # type: ignore[attr-defined]
        keys = jax.random.split(parameters_key, num_particles)
        thetas = jax.vmap(lambda k: ravel_pytree(sample(k))[0])(keys)
        seeds = fresh_seeds(seed_key, num_particles)
        kept = no_rows(model, self._capacity, thetas.shape[1])
        filters = self._filters(model).begin(thetas, seeds, kept.start)
        zero = jnp.zeros(num_particles, thetas.dtype)
        origin = jnp.arange(num_particles, dtype=jnp.int32)
        cloud = OuterCloud(thetas, seeds, filters, zero - jnp.log(float(num_particles)), zero, origin)
        return NestedState(cloud, kept, jnp.asarray(float(num_particles), thetas.dtype))

    def weigh(self, key: Key, model: Model, state: Any, observation: Observation) -> tuple[Any, Info, Array]:
        after, info, poor = self._weighed(model, state, observation)
        return after, info, ~poor

    def update(self, key: Key, model: Model, state: NestedState, observation: Observation) -> tuple[NestedState, Info]:
        after, info, poor = self._weighed(model, state, observation)

        def renew():
            return self._renewed(key, self._filters(model, jnp.shape(observation)), after, info)

        return jax.lax.cond(poor, renew, lambda: (after, info))

    def particles(self, state: NestedState) -> Particles:
        """One state of each filter, with the weight of its parameters: a joint draw of both."""
        return Particles(one_state_each(state.cloud.filters, state.cloud.log_weights), state.cloud.log_weights)

    def parameters(self, model: Model, state: NestedState) -> Any:
        """The parameters, one for each particle, as the model has them."""
        return _as_declared(model, state.cloud.thetas)

    def unsupported(self, model: Model) -> str | None:
        if not has_parameters(model):
            return "it is for models with `sample_parameters`; leave `method` out."
        return None

    @property
    def _capacity(self) -> int:
        rows = min(self.history, self.window)
        return max(2, rows + rows % 2)

    def _filters(self, model: Model, shape: tuple[int, ...] = ()) -> InnerFilters:
        """`shape` is that of an observation; before the first one it is not looked at."""
        return InnerFilters(unbound(model), shape, self.inner)  # type: ignore[arg-type]

    def _weighed(self, model: Model, state: NestedState, observation: Observation) -> tuple[NestedState, Info, Array]:
        """The row taken in by weighing alone, and whether that is not enough."""
        n = state.cloud.thetas.shape[0]
        kept, cloud = state.kept.with_room(), state.cloud
        filters, gained = self._filters(model, jnp.shape(observation)).step(
            cloud.thetas, cloud.seeds, cloud.filters, kept.next_number, observation, conditions_of(model)
        )
        log_weights = cloud.log_weights + gained
        log_predictive = jax.nn.logsumexp(log_weights)
        left = ess(log_weights)
        kept = kept.append(model, observation, log_predictive)
        log_past = cloud.log_past + gained - log_predictive
        cloud = OuterCloud(cloud.thetas, cloud.seeds, filters, normalise(log_weights), log_past, cloud.origin)
        poor = (left < jnp.minimum(self.threshold * n, WORN * state.best)) | (kept.due & (left < FRESH * n))
        kept = jax.lax.cond(kept.due & ~poor, lambda: self._with_fit(kept, cloud), lambda: kept)
        info = Info(
            ess=left,
            log_predictive=log_predictive,
            flagged=cloud.independent < 1 / WRONG**2,
            exact=~kept.start.in_use,
            move=jnp.asarray(int(Move.WEIGHED), jnp.int32),
            possible=jnp.mean(jnp.isfinite(gained)),
            undefined=jnp.mean(jnp.isnan(gained)),
            details=_details(log_weights),
        )
        return NestedState(cloud, kept, state.best), info, poor

    def _renewed(self, key: Key, filters: InnerFilters, state: NestedState, info: Info) -> tuple[NestedState, Info]:
        """The outer cloud drawn anew or, where a Gaussian is too far from the target, resampled and moved."""
        draw_key, move_key = jax.random.split(key)
        n = state.cloud.thetas.shape[0]
        renewal = renewed(draw_key, filters, state.kept, state.cloud)
        drawn = renewal.cloud
        right = (ess(drawn.log_weights) >= ENOUGH * n) & (pareto_k(drawn.log_weights) < TAIL)
        right &= jnp.isfinite(renewal.log_mean)

        def take():
            kept = state.kept.corrected(renewal.log_mean)
            log_past = drawn.log_past - renewal.log_mean
            return eqx.tree_at(lambda c: c.log_past, drawn, log_past), kept, renewal.log_mean, jnp.nan

        def move():
            cloud, accepted = moved(move_key, filters, state.kept, state.cloud)
            return cloud, state.kept, 0.0, accepted

        cloud, kept, gained, accepted = jax.lax.cond(
            right, take, lambda: jax.tree.map(lambda a, b: jnp.asarray(a, jnp.result_type(b)), move(), take())
        )
        kept = jax.lax.cond(kept.due, lambda: self._with_fit(kept, cloud), lambda: kept)
        details = {"acceptance": jnp.asarray(accepted, gained.dtype), "rounds": renewal.rounds, "drawn": right}
        info = eqx.tree_at(
            lambda i: (i.log_predictive, i.flagged, i.move, i.details),
            info,
            (
                info.log_predictive + gained,
                cloud.independent < 1 / WRONG**2,
                jnp.asarray(int(Move.TEMPERED), jnp.int32),
                details,
            ),
        )
        return NestedState(cloud, kept, ess(cloud.log_weights)), info

    def _with_fit(self, kept: KeptRows, cloud: OuterCloud) -> KeptRows:
        return kept.with_fit(fitted(cloud.thetas, cloud.log_weights, cloud.filters.points, cloud.filters.log_weights))


def _details(like: Array) -> dict[str, Array]:
    """Of a step that only weighed."""
    return {
        "acceptance": jnp.asarray(jnp.nan, like.dtype),
        "rounds": jnp.zeros((), jnp.int32),
        "drawn": jnp.asarray(False),
    }


@eqx.filter_jit  # sessions ask outside of a compiled step
def _as_declared(model: Model, thetas: Array) -> Any:
    return jax.vmap(unravel(model))(thetas)
