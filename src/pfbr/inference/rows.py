"""One observation and what came with it, as a user gives them, made ready for compiled functions.

Missing values are told apart here: NaN becomes a finite number and a mask, so that no gradient ever sees it.
"""

from typing import Any, NamedTuple, cast

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.checks import as_array, precision
from pfbr.errors import InputError
from pfbr.inference.clock import Clock, as_times, elapsed_times
from pfbr.inference.method import Given, Stream
from pfbr.inference.whole_inputs import as_whole, needs_whole_inputs
from pfbr.models.base import Model, has_observations
from pfbr.models.checks import checked_observation, checked_observations
from pfbr.models.conditions import Conditions, bind, example_of, observation_shape
from pfbr.models.first_look import look_with, waits_for_a_row
from pfbr.models.needs import all_needs, needs
from pfbr.typing import Numbers


class Row(NamedTuple):
    """An observation without NaN, the mask of what was seen (None: all), the elapsed time, the inputs."""

    observation: Any
    observed: Any = None
    dt: Any = None
    inputs: Any = None

    @property
    def given(self) -> Given:
        return Given(self.dt, self.inputs, self.observed)

    def after(self, dt: float | None) -> "Row":
        """The same row, so much later than the one before."""
        elapsed = None if dt is None else np.asarray(dt, precision())
        return Row(self.observation, self.observed, elapsed, self.inputs)

    def conditions(self, model: Model) -> Conditions:
        """Conditions of this form, for a method that stores rows to see their shapes."""
        words = all_needs(model)
        time = jnp.zeros(()) if "time" in words else None
        return Conditions(self.dt, time, self.inputs if "inputs" in words else None, self.observed)


class RowReader:
    """Reads the rows of one model; the first one fixes shapes that the model does not tell."""

    def __init__(self, model: Model):
        self.model = model
        words = all_needs(model)
        self.needs_dt = bool(words & {"dt", "time"})
        self._needs_inputs = "inputs" in words
        self._always_masked = "observed" in needs(model, "log_likelihood")
        self._shape = observation_shape(model)
        self._inputs: Any = None  # their shapes, once seen
        self._whole: bool | None = None  # whether inputs are whole numbers, such as the index of a sensor
        self._may_have_gaps: bool | None = None  # found out when the first one comes
        self._to_be_looked_at = waits_for_a_row(model)  # what the model cannot tell is looked at with the first row

    def resume(self, row: Row) -> None:
        """Expect rows like this one, which was read before."""
        self._shape = np.shape(row.observation)
        self._inputs = None if row.inputs is None else jax.tree.map(np.shape, row.inputs)

    def read(self, observation: Numbers | None, *, inputs: Any) -> Row:
        """One observation with its inputs; the elapsed time is for `Row.after` to say."""
        if self._shape is None and observation is None:
            raise InputError(
                f"nothing was observed, and {type(self.model).__name__} does not tell the shape of an observation "
                "before one has come: pass NaN in its shape."
            )
        expected = self._shape if self._shape is not None else self._shape_with(inputs)
        array = checked_observation(self.model, expected, observation)
        inputs = self._checked_inputs(inputs, array.shape)
        if self._shape is None and observation is not None:
            self._shape = array.shape
        seen = ~np.isnan(array)
        self._look_once(array, seen, inputs)
        if not seen.all() and seen.any():
            self._check_gaps(inputs)
        observed = None if seen.all() and not self._always_masked else seen
        return Row(np.where(seen, array, 0).astype(array.dtype), observed, None, inputs)

    def read_stream(self, observations: Numbers, *, times: Any, inputs: Any, clock: Clock) -> tuple[Stream, bool]:
        """A stream (T, …) or many (S, T, …), and whether it is many. Times are (T,), or (S, T) for many; they go on
        from where the clock stands."""
        expected = self._shape if self._shape is not None else self._shape_with(inputs, observations)
        array, many = checked_observations(self.model, observations, expected)
        lead = array.shape[:2] if many else array.shape[:1]
        shape = array.shape[len(lead) :]
        if self._shape not in (None, shape):
            raise InputError(f"`observations` must hold rows of shape {self._shape}, as before; got {shape}.")
        inputs = self._checked_inputs(inputs, shape, lead)
        dt = self._elapsed(times, lead, clock)
        self._shape = shape
        seen = ~np.isnan(array)
        at = (0,) * len(lead)
        self._look_once(array[at], seen[at], jax.tree.map(lambda leaf: leaf[at], inputs))
        inner = tuple(range(len(lead), array.ndim))
        partial = seen.any(axis=inner) & ~seen.all(axis=inner) if inner else np.zeros(lead, bool)
        if partial.any():
            self._check_gaps(jax.tree.map(lambda leaf: leaf[at], inputs))
        observed = None if seen.all() and not self._always_masked else jnp.asarray(seen)
        filled = jnp.asarray(np.where(seen, array, 0).astype(array.dtype))
        return Stream(filled, dt, inputs, observed), many

    def example(self) -> Row:
        """A row such as may come, for what has to be made before the first one is there."""
        if self._shape is None or (self._needs_inputs and example_of(self.model) is None):
            raise InputError(
                f"{type(self.model).__name__} does not tell the shape of an observation and its inputs before one has "
                "come: update the session first, or give the model `sample_observation` and `sample_inputs`."
            )
        inputs = None
        if self._needs_inputs:
            shapes = jax.eval_shape(self.model.sample_inputs, jax.random.key(0))
            inputs = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), shapes)
        dt = np.asarray(1.0, jnp.result_type(float)) if self.needs_dt else None
        zeros = np.zeros(self._shape, jnp.result_type(float))
        return Row(zeros, np.ones(self._shape, bool) if self._always_masked else None, dt, inputs)

    def read_inputs_ahead(self, inputs: Any, length: int) -> Any:
        """Inputs of `length` steps to come; required where the dynamics or the observations to be drawn name them."""
        drawn = [m for m in ("sample_transition", "sample_observation") if "inputs" in needs(self.model, m)]
        if inputs is None and drawn:
            raise InputError(
                f"{type(self.model).__name__} names `inputs` in `{'` and `'.join(drawn)}`: pass `inputs=` with one row "
                f"for each of the {length} steps to come."
            )
        return None if inputs is None else self._checked_inputs(inputs, self._shape or (1,), (length,))

    def _elapsed(self, times, lead, clock):
        dtype = jnp.result_type(float)
        if times is None:
            return jnp.ones(lead, dtype) if self.needs_dt else None
        if len(lead) == 1:
            return jnp.asarray(elapsed_times(times, lead[0], clock), dtype)
        rows = as_times(times)
        rows = np.broadcast_to(rows, lead) if rows.ndim == 1 else rows
        if rows.shape != lead:
            raise InputError(f"`times` must have shape {lead[1:]} or {lead}; got {np.shape(times)}.")
        each = [elapsed_times(row, lead[1], clock) for row in rows]
        return jnp.asarray(np.stack(each), dtype)

    def _checked_inputs(self, inputs: Any, shape: tuple[int, ...], lead: tuple[int, ...] = ()) -> Any:
        name = type(self.model).__name__
        if inputs is None:
            if self._needs_inputs:
                which = [m for m in ("sample_transition", "log_likelihood") if "inputs" in needs(self.model, m)]
                raise InputError(
                    f"{name} names `inputs` in `{' and '.join(which) or 'its methods'}`: pass `inputs=` with every "
                    "observation."
                )
            return None
        if not self._needs_inputs:
            raise InputError(
                f"`inputs` were passed, and no method of {name} names them. Write e.g. "
                "`def log_likelihood(self, x, observation, *, inputs)`, or leave them out."
            )
        inputs = jax.tree.map(
            lambda leaf: as_array(leaf, "inputs"), inputs, is_leaf=lambda leaf: isinstance(leaf, list)
        )
        if not jax.tree.leaves(inputs) or any(leaf.size == 0 for leaf in jax.tree.leaves(inputs)):
            raise InputError("`inputs` hold no numbers: pass what the model's methods look at.")
        for leaf in jax.tree.leaves(inputs):
            if leaf.shape[: len(lead)] != lead:
                raise InputError(f"`inputs` must lead with {lead}, as the observations do; got shape {leaf.shape}.")
        if self._whole is None:
            one = jax.tree.map(lambda leaf: leaf[(0,) * len(lead)], inputs)
            self._whole = needs_whole_inputs(self.model, one, shape)
        if self._whole:
            inputs = jax.tree.map(as_whole, inputs)
        shapes = jax.tree.map(lambda leaf: leaf.shape[len(lead) :], inputs)
        if self._inputs is None:
            self._inputs = self._expected_inputs() or shapes
        if shapes != self._inputs:
            raise InputError(f"`inputs` must have the shapes {self._inputs}, as {name} knows them; got {shapes}.")
        return inputs

    def _shape_with(self, inputs: Any, observations: Numbers = None) -> tuple[int, ...] | None:
        """The shape of an observation, for a model that tells it once it has inputs; None where that cannot be seen."""
        if inputs is None or not self._needs_inputs or not has_observations(self.model):
            return None
        for lead in (0,) if observations is None else (1, 2):  # a row, a stream of them, many streams
            try:
                first = lambda leaf, lead=lead: np.asarray(leaf, float)[(0,) * lead]
                one = jax.tree.map(first, inputs, is_leaf=lambda leaf: isinstance(leaf, list))
                found = observation_shape(cast(Model, example_of(self.model, one)))
            except Exception:  # what is wrong with the inputs is said when they are looked at
                continue
            if observations is None or np.ndim(observations) == lead + len(found or ()):
                return found
        return None

    def _expected_inputs(self) -> Any:
        if example_of(self.model) is None:
            return None
        drawn = jax.eval_shape(self.model.sample_inputs, jax.random.key(0))
        return jax.tree.map(lambda leaf: leaf.shape, drawn)

    def _look_once(self, observation: np.ndarray, seen: np.ndarray, inputs: Any) -> None:
        """Look at the model with its first row, where it could not be looked at without."""
        if self._to_be_looked_at:
            one = jnp.ones(()) if self.needs_dt else None
            time = one if "time" in all_needs(self.model) else None
            filled = np.where(seen, observation, 0).astype(observation.dtype)
            look_with(self.model, Conditions(one, time, inputs), filled, whole=bool(seen.all()))
            self._to_be_looked_at = False

    def _check_gaps(self, inputs: Any) -> None:
        """Refuse an observation that is missing in part where the model cannot leave a part out."""
        if self._may_have_gaps is None:
            self._may_have_gaps = self._always_masked or self._componentwise(inputs)
        if not self._may_have_gaps:
            raise InputError(
                f"some components of the observation are missing, and `{type(self.model).__name__}.log_likelihood` is "
                "one number for all of them. Return one for each component where they are independent, or name "
                "`observed` and leave out what it says; an observation that is missing altogether is None."
            )

    def _componentwise(self, inputs: Any) -> bool:
        example = example_of(self.model)
        if example is None:
            words = all_needs(self.model)
            one = jnp.ones(())
            example = bind(self.model, Conditions(one, one if "time" in words else None, inputs), shape=self._shape)
        inner = getattr(example, "model", example)
        given = example._given("log_likelihood") if hasattr(example, "_given") else {}
        x = jnp.zeros(int(self.model.dim))
        own = example._own(x) if hasattr(example, "_own") else x
        value = jax.eval_shape(lambda: inner.log_likelihood(own, jnp.zeros(self._shape), **given))
        return value.ndim > 0
