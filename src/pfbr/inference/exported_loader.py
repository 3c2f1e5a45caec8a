"""Runs an exported step with jax and NumPy alone. A copy of this file stands beside every exported step.

    from pfbr_step import Stream

    stream = Stream(seed=0)
    answer = stream.update([0.3])
    answer["mean"], answer["info.flagged"]

An observation that leaves no posterior raises ValueError and changes nothing.
"""

import hashlib
import json
from pathlib import Path

import jax
import numpy as np
from jax import export

FORMAT = 1
HERE = Path(__file__).resolve().parent


class Stream:
    """A live stream: `update` takes one observation and gives the posterior as named NumPy arrays."""

    def __init__(self, directory=HERE, *, seed=0):
        directory = Path(directory)
        self.about = json.loads((directory / "step.json").read_text(encoding="utf-8"))
        if self.about.get("format") != FORMAT:
            raise ValueError(f"{directory} holds a step of format {self.about.get('format')}; this is {FORMAT}.")
        functions = []
        for name in ("start.bin", "step.bin"):
            content = (directory / name).read_bytes()
            if hashlib.sha256(content).hexdigest() != self.about["sha256"][name]:
                raise ValueError(f"{directory / name} is damaged, or not the file that was exported: copy it again.")
            functions.append(jax.jit(export.deserialize(bytearray(content)).call))
        start, self._step = functions
        self._key = jax.random.key_data(jax.random.key(seed))
        self._state = start(self._key)
        self.stage = 0

    def update(self, observation, *, dt=None, inputs=None):
        """The posterior after one more observation; None or NaN: what was not observed.

        `dt` is the time since the last one, in the model's unit; 1 where it is left out.
        """
        shape, real = tuple(self.about["observation"]), np.dtype(self.about["precision"])
        y = np.full(shape, np.nan) if observation is None else np.asarray(observation, dtype=real)
        if y.shape != shape:
            raise ValueError(f"`observation` must have shape {shape}; got {y.shape}.")
        if np.isinf(y).any():
            raise ValueError(f"`observation` must be finite; got {y}.")
        seen = ~np.isnan(y)
        elapsed = self._elapsed(dt, real)
        rows = self._inputs(inputs)
        state, said = self._step(
            self._key, np.int32(self.stage + 1), self._state, np.where(seen, y, 0).astype(real), seen, elapsed, rows
        )
        answer = {name: np.asarray(value) for name, value in said.items()}
        self._refuse(answer)
        self._state, self.stage = state, self.stage + 1
        weights = np.exp(answer.pop("log_weights").astype(float))
        weights /= weights.sum()
        centred = answer["particles"] - weights @ answer["particles"]
        answer["weights"], answer["mean"] = weights, weights @ answer["particles"]
        answer["std"] = np.sqrt(weights @ centred**2 / max(1.0 - float(weights @ weights), 1e-12))
        return answer

    def _elapsed(self, dt, real):
        if dt is not None and not self.about["takes_time"]:
            raise ValueError("this model does not look at time: leave `dt` out.")
        elapsed = np.asarray(1.0 if dt is None else dt, dtype=real)  # without times, reports are counted
        if not np.isfinite(elapsed) or elapsed < 0:
            raise ValueError(f"`dt` must be a finite number of at least 0; got {dt}.")
        return elapsed

    def _inputs(self, inputs):
        wanted = self.about["inputs"]
        if not wanted:
            if inputs is not None:
                raise ValueError("this model takes no inputs: leave them out.")
            return []
        given = inputs if isinstance(inputs, dict) else {one["name"]: inputs for one in wanted[:1]}
        if set(given) != {one["name"] for one in wanted} or any(value is None for value in given.values()):
            raise ValueError(f"`inputs` must be a dict with {[one['name'] for one in wanted]}; got {inputs!r}.")
        rows = [np.asarray(given[one["name"]], dtype=one["dtype"]) for one in wanted]
        for one, row in zip(wanted, rows, strict=True):
            if row.shape != tuple(one["shape"]):
                raise ValueError(f"the input {one['name']!r} must have shape {tuple(one['shape'])}; got {row.shape}.")
        return rows

    def _refuse(self, answer):
        if float(answer.get("info.undefined", 0.0)) > 0:
            raise ValueError("the model's log likelihood is NaN there: the observation is refused.")
        possible = answer.get("info.possible")
        if (possible is not None and possible <= 0) or answer.get("info.log_predictive", 0.0) == -np.inf:
            raise ValueError("the model says that this observation cannot happen: it is refused.")
        if not np.isfinite(answer["particles"]).all():
            raise ValueError("the step left particles that are not finite: the observation is refused.")
