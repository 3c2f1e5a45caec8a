"""Choose a setting by trying it: the candidate that gives the true unknowns of simulated streams most density."""

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

from pfbr.errors import InputError
from pfbr.inference.method import Method, Stream, record
from pfbr.models.base import Model
from pfbr.models.simulate import simulate
from pfbr.particles.density import kde_log_density, silverman
from pfbr.typing import Key


class Tuned(NamedTuple):
    """The best candidate, and the score of each of them (lower is better)."""

    method: Method
    scores: np.ndarray


@eqx.filter_jit
def _score(key: Key, method: Method, model: Model, num_particles: int, length: int, num_tasks: int):
    def one(task_key):
        simulate_key, run_key = jax.random.split(task_key)
        drawn = simulate(simulate_key, model, length)
        stream = Stream(drawn.observations, drawn.dt, drawn.inputs)
        said = record(run_key, method, model, stream, num_particles).particles

        def surprise(particles, truth):
            return -kde_log_density(particles, silverman(particles), truth[None])[0]

        return jax.vmap(surprise)(said, drawn.truths)

    return jax.lax.map(one, jax.random.split(key, num_tasks))


def tune(
    key: Key,
    candidates: Sequence[Method],
    model: Model,
    *,
    num_particles: int = 128,
    length: int = 10,
    num_tasks: int = 16,
) -> Tuned:
    """Run each candidate on the same validation streams, drawn from the model with unknowns from its prior.

    The score, the mean of −log q(true unknown) over streams and stages with q the kernel density of the particles, is
    proper: no posterior has a lower expected score than the exact one. It needs no truth beyond the simulation. A
    candidate that blows up on any stream scores infinity.
    """
    if not candidates:
        raise InputError("`tune` needs at least one candidate.")

    def arrays(method):
        # numbers as arrays, so that candidates that differ only in numbers share one compilation
        return jax.tree.map(lambda leaf: jnp.asarray(leaf) if isinstance(leaf, float) else leaf, method)

    scores = []
    for candidate in candidates:
        values = np.asarray(_score(key, arrays(candidate), model, num_particles, length, num_tasks))
        scores.append(values.mean() if np.all(np.isfinite(values)) else np.inf)
    if not np.any(np.isfinite(scores)):
        raise InputError("every candidate blew up on the validation streams: try smaller steps or more regularisation.")
    return Tuned(candidates[int(np.argmin(scores))], np.asarray(scores))
