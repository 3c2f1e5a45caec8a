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
from jaxtyping import Array, Float

from pfbr.errors import ModelError
from pfbr.inference.method import Method, record
from pfbr.models.base import Model, StateSpaceModel
from pfbr.models.simulate import simulate
from pfbr.typing import Key, Observation, Observations, PerParticle, Points

STREAMS_AT_ONCE = 20  # between two signs of life
REMEMBERED = 32  # observations of a long stream whose likelihood is looked at: cost grows with their number


def rank(key: Key, log_weights: PerParticle, values: Float[Array, "n q"], truth: Float[Array, " q"]):
    """Where the truth lies among weighted values, in (0, 1), by chance among equal ones; uniform if it is one more."""
    n = values.shape[0]
    weights = jnp.exp(log_weights)
    below, tied = (weights @ found.astype(weights.dtype) for found in (values < truth, values == truth))
    return (n * below + jax.random.uniform(key, truth.shape) * (n * tied + 1)) / (n + 1)


def simulated_streams(key: Key, model: Model, num: int, length: int) -> tuple[Array, Array]:
    """Observations (num, length, …) and the truths (num, length, d) behind them; a model that makes NaN is refused."""
    drawn = _drawn(key, model, num, length)
    for name, array in zip(("sample_observation", "sample_prior or sample_transition"), drawn, strict=True):
        if not np.all(np.isfinite(np.asarray(array))):
            stream, stage = (int(i) for i in np.argwhere(~np.isfinite(np.asarray(array)))[0][:2])
            raise ModelError(
                f"`{name}` of {type(model).__name__} made a value that is not finite (simulated stream {stream + 1}, "
                f"observation {stage + 1}): there is no truth to compare with."
            )
    return drawn


def follow(
    key: Key, method: Method, model: Model, observations: Array, truths: Array, num_particles: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Ranks (streams, stages, d + 1), a few streams at a time, and where all particles were finite (streams, stages).

    The parts have one shape, so that they are compiled once; a stream's ranks do not depend on its part.
    """
    num = observations.shape[0]
    keys = jax.random.split(key, num)
    for start in range(0, num, STREAMS_AT_ONCE):
        chosen = np.minimum(np.arange(start, start + STREAMS_AT_ONCE), num - 1)  # the last one is filled up
        parts = (keys[chosen], observations[chosen], truths[chosen])
        ranks, whole, defined = (
            np.asarray(part)[: num - start] for part in _followed(method, model, parts, num_particles)
        )
        if not defined.all():
            raise ModelError(
                f"`log_likelihood` of {type(model).__name__} is NaN for an observation at the very unknown that it was "
                "drawn from: check it against `sample_observation`."
            )
        yield ranks, whole


@eqx.filter_jit
def _drawn(key, model, num, length):
    return jax.vmap(lambda k: simulate(k, model, length))(jax.random.split(key, num))


@eqx.filter_jit
def _followed(method, model, parts, num_particles):
    """One stream after the other: memory does not grow with their number, and repairs are made only on demand."""

    def one(inputs):
        stream_key, stream, truth = inputs
        run_key, rank_key = jax.random.split(stream_key)
        particles = record(run_key, method, model, stream, num_particles).particles
        stages = jnp.arange(stream.shape[0])

        def at(stage_inputs):
            key, stage, points, log_weights, unknown = stage_inputs
            points = jnp.concatenate([points, unknown[None]])
            values = jnp.concatenate([points, _fit(model, points, stream, stage)[:, None]], axis=1)
            whole = jnp.all(jnp.isfinite(points)) & ~jnp.any(jnp.isnan(values)) & ~jnp.any(jnp.isnan(log_weights))
            return rank(key, log_weights, values[:-1], values[-1]), whole, ~jnp.isnan(values[-1, -1])

        keys = jax.random.split(rank_key, stream.shape[0])
        return jax.lax.map(at, (keys, stages, particles.points, particles.log_weights, truth))

    return jax.lax.map(one, parts)


def _fit(model: Model, points: Points, stream: Observations, stage: Array) -> PerParticle:
    """Log likelihood of the latest observation and, for an unknown at rest, of those before: at most 32 of them."""

    def likelihood(observation: Observation) -> PerParticle:
        return jax.vmap(lambda x: model.log_likelihood(x, observation))(points)

    latest = likelihood(stream[stage])
    if isinstance(model, StateSpaceModel):
        return latest
    length = stream.shape[0]
    kept = np.unique(np.linspace(0, length - 1, min(length, REMEMBERED)).round().astype(int))
    earlier = jnp.where(jnp.asarray(kept)[:, None] < stage, jax.vmap(likelihood)(stream[kept]), 0.0)
    return latest + jnp.sum(earlier, axis=0)
