"""A model at rest from a NumPyro function: priors, constraints, and the likelihood of one row."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp
from jaxtyping import Array

from pfbr.errors import ModelError
from pfbr.models.base import Model
from pfbr.models.dependence import depends_on_first
from pfbr.models.numpyro.bijection import Bijection, at_free_numbers, bijection_of, same_map
from pfbr.models.numpyro.normals import made_of, normals_of
from pfbr.models.numpyro.rows import RowFunction
from pfbr.models.numpyro.signatures import made_class, naming
from pfbr.models.numpyro.sites import by_name, drawn, log_density, log_likelihoods
from pfbr.typing import Key, Scalar

Value = Any  # a dict of arrays by the names of sites


class NumpyroModel(Model):
    """Methods take and give dicts by the names of sites, on the scale of the function."""

    rows: RowFunction = eqx.field(static=True)
    normals: tuple[tuple[str, int], ...] = eqx.field(static=True)
    table: Any  # inputs (N, …) to draw from; None

    def sample_prior(self, key: Key) -> Value:
        sites = self.rows(self.rows.example, self._blank(), drawn(key))
        return {name: jnp.asarray(site["value"]) for name, site in sites.latent.items()}

    def log_prior(self, x: Value) -> Scalar:
        sites = self.rows(self.rows.example, self._blank(), by_name(x))
        return sum((log_density(site) for site in sites.latent.values()), jnp.zeros(()))

    def log_likelihood(self, x: Value, observation: Array, **given: Any) -> Array:
        site = self.rows.site(self.rows(given.get("inputs"), observation, by_name(x)))
        return fitted(self.rows.of_row(log_likelihoods(site)), observation)

    def sample_observation(self, key: Key, x: Value, **given: Any) -> Array:
        site = self.rows.site(self.rows(given.get("inputs"), self._blank(), by_name(x)))
        return jnp.asarray(self.rows.of_row(site["fn"].sample(key)), jnp.result_type(float))

    def _from_normal(self, z: Array) -> Value:
        sites = self.rows(self.rows.example, self._blank(), made_of(z, dict(self.normals)))
        return {name: site["value"] for name, site in sites.latent.items()}

    def _draw_inputs(self, key: Key) -> Any:
        return row_at_random(key, self.table)

    def _blank(self) -> Array:
        return jnp.zeros(self.rows.observed.shape)


def static_model(function: Callable, inputs: Any) -> Model:
    """The model of a function of one row. `inputs`: a table (N, …) to read shapes off and to draw rows from."""
    table = as_table(inputs)
    name = getattr(function, "__name__", "model")
    rows = RowFunction(function, first_row(table), name)
    if inputs is not None and not rows.inputs:
        raise ModelError(f"`inputs` were passed, and `{name}` takes no argument but the observation.")
    unknowns = _unknowns(rows)
    normals = {site: normals_of(found) for site, found in _sites(rows, 0.0).items()}
    even = all(normals[site] == unknowns[site].size for site in unknowns)
    methods: dict[str, Callable] = {
        "log_likelihood": naming(NumpyroModel.log_likelihood, rows.words),
        "sample_observation": naming(NumpyroModel.sample_observation, rows.words),
    }
    if even:
        methods["prior_from_normal"] = lambda self, z: self._from_normal(z)
    if table is not None:
        methods["sample_inputs"] = lambda self, key: self._draw_inputs(key)
    made = made_class(name, NumpyroModel, unknowns, methods)
    return made(rows=rows, normals=tuple(normals.items()) if even else (), table=table)


def _sites(rows: RowFunction, level: float) -> dict[str, Any]:
    return rows(rows.example, jnp.zeros(rows.observed.shape), at_free_numbers(level)).latent


def _unknowns(rows: RowFunction) -> dict[str, Bijection]:
    here, there = _sites(rows, 0.0), _sites(rows, 0.7)
    if not here:
        raise ModelError(f"`{rows.name}` has no latent site: there is nothing to learn. Give it a numpyro.sample.")
    found = {name: bijection_of(site) for name, site in here.items()}
    check_fixed(found, {name: bijection_of(site) for name, site in there.items()}, "another unknown")
    if rows.inputs:
        _check_prior_without_inputs(rows)
    return found


def check_fixed(found: dict[str, Bijection], other: dict[str, Bijection], on: str) -> None:
    """A support that moves has no fixed map from free numbers."""
    for name, map_here in found.items():
        if name not in other or not same_map(map_here, other[name]):
            raise ModelError(
                f"the support of the site {name!r} depends on {on}. Write it as a fixed one that is shifted or scaled, "
                "for example `share = sample(…, Uniform(0, 1))` and `limit * share`."
            )


def _check_prior_without_inputs(rows: RowFunction) -> None:
    blank = jnp.zeros(rows.observed.shape)
    for name in _sites(rows, 0.0):

        def density(inputs, name=name):
            return log_density(rows(inputs, blank, at_free_numbers(0.3)).latent[name])

        if depends_on_first(density, rows.example):
            raise ModelError(
                f"the prior of the site {name!r} depends on the inputs, and there is one prior for all rows: take what "
                "it needs from outside of the function."
            )


def fitted(values: Array, observation: Array) -> Array:
    """One number for each component of the observation, where there are as many; their sum otherwise."""
    return values if jnp.shape(values) == jnp.shape(observation) else jnp.sum(values)


def as_table(inputs: Any) -> Any:
    """Inputs (N, …), the first axis the rows."""
    if inputs is None:
        return None
    table = jax.tree.map(_numbers, inputs, is_leaf=lambda leaf: isinstance(leaf, list))
    lengths = {leaf.shape[:1] for leaf in jax.tree.leaves(table)}
    if len(lengths) != 1 or lengths & {(), (0,)}:
        raise ModelError(
            "`inputs` must be a table of the inputs of one row or more, rows along the first axis (or a tree of such "
            f"tables); got the shapes {jax.tree.map(jnp.shape, table)}."
        )
    return table


def _numbers(leaf: Any) -> Array:
    """Whole numbers stay whole: a function may index with them."""
    array = np.asarray(leaf)
    return jnp.asarray(array, jnp.int32 if array.dtype.kind in "iu" else jnp.result_type(float))


def first_row(table: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf[0], table)


def row_at_random(key: Key, table: Any) -> Any:
    index = jax.random.randint(key, (), 0, jax.tree.leaves(table)[0].shape[0])
    return jax.tree.map(lambda leaf: leaf[index], table)
