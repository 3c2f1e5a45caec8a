"""Where simulated truths rank among a method's particles: stream after stream, stage by stage.

If x* and the stream come from the model, x* is one more draw of the posterior, and its rank is uniform (Talts et al.
2018). That holds for every function of the unknown and the data. We rank each coordinate, and the likelihood of the
data: coordinates alone would pass a method that learns nothing, whose truths rank uniformly among draws of the prior
(Modrák et al. 2023), or one whose coordinates are right one by one and wrong together.
"""

from collections.abc import Iterator

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from pfbr.errors import ModelError
from pfbr.inference.method import Method, Stream, record
from pfbr.judging.stages import StreamRow, rows_of
from pfbr.models.base import Model, StateSpaceModel
from pfbr.models.simulate import Simulated, simulate
from pfbr.typing import Key, PerParticle, Points

STREAMS_AT_ONCE = 20  # between two signs of life
REMEMBERED = 32  # observations of a long stream whose likelihood is looked at: cost grows with their number


def rank(key: Key, log_weights: PerParticle, values: Float[Array, "n q"], truth: Float[Array, " q"]):
    """Where the truth lies among weighted values, in (0, 1), by chance among equal ones; uniform if it is one more."""
    n = values.shape[0]
    weights = jnp.exp(log_weights)
    below, tied = (weights @ found.astype(weights.dtype) for found in (values < truth, values == truth))
    return (n * below + jax.random.uniform(key, truth.shape) * (n * tied + 1)) / (n + 1)


def simulated_streams(key: Key, model: Model, num: int, length: int) -> Simulated:
    """Streams (num, length, …) with the truths behind them; a model that makes NaN is refused."""
    drawn = _drawn(key, model, num, length)
    made_by = {"sample_observation": drawn.observations, "sample_prior or sample_transition": drawn.truths}
    for name, array in made_by.items():
        if not np.all(np.isfinite(np.asarray(array))):
            stream, stage = (int(i) for i in np.argwhere(~np.isfinite(np.asarray(array)))[0][:2])
            raise ModelError(
                f"`{name}` of {type(model).__name__} made a value that is not finite (simulated stream {stream + 1}, "
                f"observation {stage + 1}): there is no truth to compare with."
            )
    return drawn


def follow(
    key: Key, method: Method, model: Model, drawn: Simulated, num_particles: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Ranks (streams, stages, d + 1), a few streams at a time, and where all particles were finite (streams, stages).

    The parts have one shape, so that they are compiled once; a stream's ranks do not depend on its part.
    """
    num = drawn.observations.shape[0]
    for first in range(0, num, STREAMS_AT_ONCE):
        chosen = np.minimum(np.arange(first, first + STREAMS_AT_ONCE), num - 1)  # the last part is filled up
        part = jax.tree.map(lambda leaf, chosen=chosen: leaf[chosen], drawn)
        found = _followed(key, method, model, jnp.asarray(chosen), part, num_particles)
        ranks, whole, defined = (np.asarray(array)[: num - first] for array in found)
        if not defined.all():
            raise ModelError(
                f"`log_likelihood` of {type(model).__name__} is NaN for an observation at the very unknown that it was "
                "drawn from: check it against `sample_observation`."
            )
        yield ranks, whole


@eqx.filter_jit
def _drawn(key, model, num, length) -> Simulated:
    return jax.vmap(lambda k: simulate(k, model, length))(jax.random.split(key, num))


@eqx.filter_jit
def _followed(key, method, model, numbers, part: Simulated, num_particles):
    """One stream after the other: memory does not grow with their number, and fallbacks are taken only on demand."""

    def one(inputs):
        number, drawn = inputs
        run_key, rank_key = jax.random.split(jax.random.fold_in(key, number))
        stream = Stream(drawn.observations, drawn.dt, drawn.inputs)
        said = record(run_key, method, model, stream, num_particles)
        rows, length = rows_of(stream), drawn.observations.shape[0]
        truths = drawn.truths if drawn.params is None else jnp.hstack([drawn.truths, _repeated(drawn.params, length)])

        def at(inputs):
            stage_key, stage, particles, parameters, unknown, truth = inputs
            points = jnp.concatenate([particles.points, unknown[None]])
            params = jax.tree.map(lambda all_, true: jnp.concatenate([all_, true[None]]), parameters, drawn.params)
            fit = _fit(model, points, params, rows, stage)
            known = particles.points if parameters is None else jnp.hstack([particles.points, _flat(parameters)])
            values = jnp.concatenate([known, fit[:-1, None]], axis=1)
            whole = jnp.all(jnp.isfinite(known)) & ~jnp.any(jnp.isnan(fit)) & ~jnp.any(jnp.isnan(particles.log_weights))
            true_values = jnp.append(truth, fit[-1])
            return rank(stage_key, particles.log_weights, values, true_values), whole, ~jnp.isnan(fit[-1])

        keys = jax.random.split(rank_key, length)
        return jax.lax.map(at, (keys, jnp.arange(length), said.particles, said.parameters, drawn.truths, truths))

    return jax.lax.map(one, (numbers, part))


def _flat(parameters) -> Points:
    """Static parameters, one for each particle, as rows of numbers."""
    return jax.vmap(lambda one: ravel_pytree(one)[0])(parameters)


def _repeated(params, length: int) -> Points:
    return jnp.tile(ravel_pytree(params)[0], (length, 1))


def _fit(model: Model, points: Points, parameters, rows: StreamRow, stage: Array) -> PerParticle:
    """Log likelihood of the latest observation and, for a static model, of those before: at most 32 of them."""

    def likelihood(row: StreamRow) -> PerParticle:
        return row.log_likelihoods(model, points, parameters)

    latest = likelihood(jax.tree.map(lambda leaf: leaf[stage], rows))
    if isinstance(model, StateSpaceModel):
        return latest
    length = rows.observations.shape[0]
    kept = np.unique(np.linspace(0, length - 1, min(length, REMEMBERED)).round().astype(int))
    each = jax.vmap(likelihood)(jax.tree.map(lambda leaf: leaf[kept], rows))
    return latest + jnp.sum(jnp.where(jnp.asarray(kept)[:, None] < stage, each, 0.0), axis=0)
