"""A problem: a model, streams that a seed makes, and the true posterior after each of their steps, kept in `truth/`."""

import pathlib
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

from pfbr.inference.method import Stream
from pfbr.io.records import write_npz
from pfbr.models.base import StateSpaceModel
from pfbr.models.conditions import Conditions, bind

TRUTH = pathlib.Path(__file__).parent / "truth"


@dataclass(frozen=True)
class Simulated:
    """T observations, what came with them, and the states that made them."""

    observations: np.ndarray  # (T, k), NaN where missing
    states: np.ndarray  # (T, d)
    dt: np.ndarray | None = None  # (T,); None: ordinary steps
    inputs: Any = None  # a tree of arrays that lead with T

    @property
    def times(self) -> np.ndarray:
        return np.arange(1.0, len(self.states) + 1) if self.dt is None else np.cumsum(self.dt, dtype=float)

    @property
    def stream(self) -> Stream:
        """As methods get it. The mask is always there, so that all streams of a problem compile to one program."""
        seen = np.isfinite(self.observations)
        filled = jnp.asarray(np.where(seen, self.observations, 0), jnp.float32)
        dt = None if self.dt is None else jnp.asarray(self.dt)
        return Stream(filled, dt, jax.tree.map(jnp.asarray, self.inputs), jnp.asarray(seen))

    def first(self, steps: int) -> "Simulated":
        cut = jax.tree.map(lambda values: values[:steps], (self.observations, self.states, self.dt, self.inputs))
        return Simulated(*cut)


@dataclass(frozen=True)
class Truth:
    """Moments after each step, and what each observation added to the log evidence."""

    means: np.ndarray  # (T, d)
    covariances: np.ndarray  # (T, d, d)
    log_predictives: np.ndarray  # (T,)
    seconds: float = 0.0  # of CPU
    error: float = np.nan  # of the means, in standard deviations; NaN: not measured

    def first(self, steps: int) -> "Truth":
        return replace(
            self,
            means=self.means[:steps],
            covariances=self.covariances[:steps],
            log_predictives=self.log_predictives[:steps],
        )


@dataclass(frozen=True)
class Problem(ABC):
    """Subclasses say how a seed makes a stream, and how its truth is found."""

    name: str
    model: StateSpaceModel

    def model_of(self, seed: int) -> StateSpaceModel:
        """The model of one stream; some have a prior of their own."""
        return self.model

    @abstractmethod
    def simulate(self, seed: int) -> Simulated:
        """The stream of a seed."""

    def find_truth(self, seed: int) -> Truth | None:
        """None: the state itself is what an estimate is compared with."""
        return None

    def truth(self, seed: int) -> Truth | None:
        """From `truth/`, or made and kept there."""
        path = TRUTH / f"{self.name}-{seed}.npz"
        if not path.exists():
            begun = time.process_time()
            found = self.find_truth(seed)
            if found is None:
                return None
            found = replace(found, seconds=time.process_time() - begun)
            write_npz(path, {field.name: np.asarray(getattr(found, field.name)) for field in fields(Truth)})
        with np.load(path) as stored:
            arrays = {name: stored[name] for name in stored.files}
        numbers = {name: float(arrays.pop(name)) for name in ("seconds", "error") if name in arrays}
        return Truth(**arrays, **numbers)


@eqx.filter_jit
def draw_states(model: StateSpaceModel, seed, dt, inputs):
    """A start from the prior and its path; the start itself is not part of it."""
    start_key, path_key = jax.random.split(jax.random.key(seed))

    def step(x, row):
        key, one_dt, one_inputs = row
        x = bind(model, Conditions(dt=one_dt, inputs=one_inputs)).sample_transition(key, x)
        return x, x

    return jax.lax.scan(step, model.sample_prior(start_key), (jax.random.split(path_key, len(dt)), dt, inputs))[1]


@eqx.filter_jit
def draw_observations(model: StateSpaceModel, seed, states, inputs):
    def one(key, x, one_inputs):
        return bind(model, Conditions(inputs=one_inputs)).sample_observation(key, x)

    return jax.vmap(one)(jax.random.split(jax.random.key(seed + 10**6), len(states)), states, inputs)


def draw(model: StateSpaceModel, seed: int, dt, inputs, missing) -> Simulated:
    """A stream under these times and inputs, NaN where it is missing (T,)."""
    dt, inputs = jax.tree.map(jnp.asarray, (dt, inputs))
    states = draw_states(model, jnp.asarray(seed), dt, inputs)
    observations = np.array(draw_observations(model, jnp.asarray(seed), states, inputs))
    observations[missing] = np.nan
    return Simulated(observations, np.asarray(states), np.asarray(dt), jax.tree.map(np.asarray, inputs))
