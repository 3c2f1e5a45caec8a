"""A NumPyro function of one row, or of many in a plate, as a function of one: what it takes, and what its sites are."""

from collections.abc import Callable
from typing import Any

import jax
from jax import numpy as jnp
from jaxtyping import Array

from pfbr.errors import ModelError
from pfbr.models.numpyro.observation import Observed, find_observed
from pfbr.models.numpyro.signatures import observation_among, parameters_of
from pfbr.models.numpyro.sites import Site, Sites, run_once


class RowFunction:
    """Equal and hashed by identity, as a static field must be."""

    def __init__(self, function: Callable, example: Any, name: str):
        self.function, self.name = function, name
        parameters = parameters_of(function, f"`{name}`")
        self.argument = observation_among([p.name for p in parameters], f"`{name}`")
        # what has a default of its own keeps it; None stands for data, as in `def model(age=None, y=None)`
        data = [p.name for p in parameters if p.default is p.empty or p.default is None]
        self.inputs = tuple(word for word in data if word != self.argument)
        self.batched = False
        self.example = self._example(example) if self.inputs else None
        self.observed = self._find()

    @property
    def words(self) -> tuple[str, ...]:
        return ("inputs",) if self.inputs else ()

    def __call__(
        self, inputs: Any, y: Any, value_of: Callable[[Site], Any], strict: bool = True, rows: int | None = None
    ) -> Sites:
        """The sites at one row; a function of many rows in a plate gets a table of one (of `rows` equal ones)."""
        many = rows if rows is not None else 1 if self.batched else None
        wide = inputs if many is None else jax.tree.map(lambda leaf: _repeated(leaf, many), inputs)
        given = dict(zip(self.inputs, [wide] if len(self.inputs) == 1 else [], strict=False))
        if len(self.inputs) > 1:
            given = {word: wide[word] for word in self.inputs}
        observation = y if y is None or rows is not None or many is None else jnp.asarray(y)[None]
        return run_once(self.function, {**given, self.argument: observation}, value_of, strict)

    def site(self, sites: Sites) -> Site:
        """The observed one, whose shape is that of the row."""
        return sites.observed[self.observed.name]

    def of_row(self, value: Array) -> Array:
        """Without the axis of the plate over rows."""
        return value[0] if self.batched else value

    def _example(self, example: Any) -> Any:
        if example is None:  # one number for each argument, until somebody says otherwise
            zero = jnp.zeros(())
            return zero if len(self.inputs) == 1 else dict.fromkeys(self.inputs, zero)
        if len(self.inputs) > 1 and not (isinstance(example, dict) and set(example) == set(self.inputs)):
            raise ModelError(
                f"`{self.name}` takes several inputs: give them as a dict with the keys {', '.join(self.inputs)}."
            )
        return example

    def _find(self) -> Observed:
        two, three = self._find_in_table(2), self._find_in_table(3)
        if two is not None and three is not None:
            over_rows = [p for p in two.plates if two.plates[p] == 2 and three.plates.get(p) == 3]
            if over_rows:
                self.batched = True
                return self._row_of_table(two, three, over_rows[0])
        return find_observed(lambda y, value_of, strict: self(self.example, y, value_of, strict), self.argument)

    def _find_in_table(self, rows: int) -> Observed | None:
        """The sites if the function were one of many rows; None where it cannot be."""
        call = lambda y, value_of, strict: self(self.example, y, value_of, strict, rows)
        try:
            return find_observed(call, self.argument, (rows,))
        except Exception:  # then it is a function of one row, and says itself what is wrong with it
            return None

    def _row_of_table(self, two: Observed, three: Observed, plate: str) -> Observed:
        local = [name for name in two.latent if two.latent[name] != three.latent.get(name) or plate in two.local[name]]
        if local:
            raise ModelError(
                f"the site {local[0]!r} lies in the plate {plate!r} over rows: every row would bring an unknown of its "
                "own. Integrate it out of the row's likelihood (a normal effect widens normal noise; a gamma rate "
                "makes a Poisson count negative binomial)."
            )
        if two.shape[:1] != (2,):
            raise ModelError(
                f"the plate {plate!r} over rows must be the first axis of the observed site {two.name!r}; its shape "
                f"with two rows is {two.shape}."
            )
        return Observed(two.name, two.shape[1:], {}, two.latent, two.local)


def _repeated(leaf: Any, rows: int) -> Array:
    array = jnp.asarray(leaf)
    return jnp.broadcast_to(array, (rows, *array.shape))
