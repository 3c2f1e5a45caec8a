"""A problem: a model, its rows, and its true posterior at some of them, kept in `truth/`."""

import pathlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.inference.method import Stream
from pfbr.io.records import write_npz
from pfbr.models.base import Model

TRUTH = pathlib.Path(__file__).parent / "truth"
STAGES = (1, 5, 20)  # and all rows


@dataclass(frozen=True)
class Posterior:
    """Moments after some rows; the log evidence is NaN where it is not known."""

    mean: np.ndarray
    cov: np.ndarray
    log_evidence: float
    error: float  # of the mean, in standard deviations


@dataclass(frozen=True)
class Truth:
    """The same for all stages, stacked."""

    stages: np.ndarray
    mean: np.ndarray
    cov: np.ndarray
    log_evidence: np.ndarray
    error: np.ndarray
    seconds: float  # of CPU


@dataclass(frozen=True)
class Problem:
    """Rows are float32 for truth and method alike: what both see."""

    name: str
    seed: int
    model: Model
    unknowns: list[str]
    observations: np.ndarray  # (T, k)
    inputs: np.ndarray | None = None  # (T, p)
    posterior: Callable[[int], Posterior] | None = field(default=None)  # None: by long chains
    every: bool = False  # truth at every row

    def __post_init__(self):
        for name in ("observations", "inputs"):
            values = getattr(self, name)
            if values is not None:
                object.__setattr__(self, name, np.asarray(values, np.float32))

    @property
    def stages(self) -> list[int]:
        total = len(self.observations)
        if self.every:
            return list(range(1, total + 1))
        return [s for s in STAGES if s < total] + [total]

    def first(self, rows: int) -> "Problem":
        """The first rows alone, with truth at each of them."""
        inputs = None if self.inputs is None else self.inputs[:rows]
        name = f"{self.name}-first-{rows}"
        return replace(self, name=name, observations=self.observations[:rows], inputs=inputs, every=True)

    @property
    def stream(self) -> Stream:
        return Stream(jnp.asarray(self.observations), inputs=None if self.inputs is None else jnp.asarray(self.inputs))

    def log_joint(self, x, stage: int):
        """Log prior and the first rows, in the precision of x."""
        rows = jnp.asarray(self.observations[:stage], x.dtype)
        if self.inputs is None:
            values = jax.vmap(lambda y: self.model.log_likelihood(x, y))(rows)
        else:
            inputs = jnp.asarray(self.inputs[:stage], x.dtype)
            values = jax.vmap(lambda y, u: self.model.log_likelihood(x, y, inputs=u))(rows, inputs)
        return self.model.log_prior(x) + jnp.sum(values)

    def truth(self) -> Truth:
        """From `truth/`, or made and kept there."""
        path = TRUTH / f"{self.name}-{self.seed}.npz"
        if not path.exists():
            begun = time.process_time()
            found = [self._posterior(stage) for stage in self.stages]
            arrays = {name: np.array([getattr(p, name) for p in found]) for name in Posterior.__dataclass_fields__}
            seconds = np.array(time.process_time() - begun)
            write_npz(path, {"stages": np.array(self.stages), **arrays, "seconds": seconds})
        with np.load(path) as stored:
            return Truth(**{name: stored[name] for name in stored.files})

    def _posterior(self, stage: int) -> Posterior:
        if self.posterior is not None:
            return self.posterior(stage)
        from benchmarks.static.chains import posterior_by_chains

        return posterior_by_chains(self, stage)
