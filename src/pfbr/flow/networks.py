"""A set of points, or of observations, as one vector."""

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.typing import Key, Observation, Points

FEEDS = ("raw", "score", "mean", "ordered")


class Dense(eqx.Module):
    """Layers y ↦ tanh(W y + b), acting on the last axis of any array."""

    weights: list[Array]
    biases: list[Array]

    def __init__(self, key: Key, widths: tuple[int, ...]):
        keys = jax.random.split(key, len(widths) - 1)
        self.weights = [
            jax.random.normal(k, (m, n)) / jnp.sqrt(m) for k, m, n in zip(keys, widths[:-1], widths[1:], strict=True)
        ]
        self.biases = [jnp.zeros(n) for n in widths[1:]]

    def __call__(self, y: Array) -> Array:
        for weight, bias in zip(self.weights, self.biases, strict=True):
            y = jnp.tanh(y @ weight + bias)
        return y


class DeepSet(eqx.Module):
    """mean_n φ(x_n): the same vector for every order of the set, and of a fixed size for any number of members."""

    features: Dense

    def __init__(self, key: Key, dim: int, width: int, *, layers: int = 1):
        self.features = Dense(key, (dim,) + (width,) * layers)

    def __call__(self, points: Points) -> Float[Array, " width"]:
        return jnp.mean(self.features(points), axis=0)


class RawObservation(eqx.Module):
    """The observation itself, flattened."""

    def __call__(self, observation: Observation) -> Float[Array, " k"]:
        return observation.reshape(-1)


class Batch(eqx.Module):
    """mean_l g(o_l) for a batch (L, k) whose order means nothing; any L."""

    deep_set: DeepSet

    def __init__(self, key: Key, dim: int, width: int):
        self.deep_set = DeepSet(key, dim, width, layers=2)

    def __call__(self, observation: Observation) -> Float[Array, " width"]:
        return self.deep_set(observation.reshape(observation.shape[0], -1))


class OrderedBatch(eqx.Module):
    """The last state of a recurrent unit that reads the batch (L, k) in order, for models where order matters."""

    cell: eqx.nn.GRUCell

    def __init__(self, key: Key, dim: int, width: int):
        self.cell = eqx.nn.GRUCell(dim, width, key=key)

    def __call__(self, observation: Observation) -> Float[Array, " width"]:
        rows = observation.reshape(observation.shape[0], -1)
        start = jnp.zeros(self.cell.hidden_size, rows.dtype)
        return jax.lax.scan(lambda state, row: (self.cell(row, state), None), start, rows)[0]
