"""A state-space model from three NumPyro functions: how the state begins, how it moves, and what is seen of it."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
from jax import numpy as jnp
from jaxtyping import Array

from pfbr.errors import ModelError
from pfbr.models.base import Model, StateSpaceModel
from pfbr.models.numpyro.bijection import at_free_numbers, bijection_of, is_plain
from pfbr.models.numpyro.normals import made_of, normals_of
from pfbr.models.numpyro.observation import find_observed
from pfbr.models.numpyro.signatures import made_class, naming, observation_among, parameters_of, words_among
from pfbr.models.numpyro.sites import Site, Sites, by_name, drawn, log_density, log_likelihoods, run_once
from pfbr.models.numpyro.static import Value, as_table, check_fixed, first_row, fitted, row_at_random
from pfbr.typing import Key, Scalar


class Part:
    """One of the functions: its first arguments, and what else it names. Equal and hashed by identity."""

    def __init__(self, function: Callable, what: str, first: int):
        self.function, self.what = function, what
        parameters = parameters_of(function, f"`{what}`")
        if len(parameters) < first:
            takes = {0: "()", 1: "(x)", 2: "(x, y=None)"}[first]
            raise ModelError(f"`{what}` must take {takes} first; it takes ({', '.join(p.name for p in parameters)}).")
        self.state = parameters[0].name if first else None
        rest = parameters[1:] if first else parameters
        self.argument = None
        if first == 2:
            named = words_among([p for p in rest if p.default is not p.empty or p.name != rest[0].name], f"`{what}`")
            self.argument = observation_among([p.name for p in rest if p.name not in named], f"`{what}`")
        self.words = words_among([p for p in rest if p.name != self.argument], f"`{what}`")

    def __call__(
        self, x: Any, given: dict[str, Any], value_of: Callable[[Site], Any], y: Any = None, strict: bool = True
    ) -> Sites:
        taken = {word: given[word] for word in self.words}
        if self.state is not None:
            taken[self.state] = x
        if self.argument is not None:
            taken[self.argument] = y
        return run_once(self.function, taken, value_of, strict)


class NumpyroStateSpaceModel(StateSpaceModel):
    """The state is a dict by the names of the sites of `init`, on their scale."""

    begins: Part = eqx.field(static=True)
    moves: Part = eqx.field(static=True)
    emits: Part = eqx.field(static=True)
    knows: Part | None = eqx.field(static=True)
    shape: tuple[int, ...] = eqx.field(static=True)
    normals: tuple[tuple[str, int], ...] = eqx.field(static=True)
    table: Any

    def sample_prior(self, key: Key, **given: Any) -> Value:
        return _values(self.begins(None, given, drawn(key)), self.unknowns)

    def log_prior(self, x: Value, **given: Any) -> Scalar:
        return _total(self.begins(None, given, by_name(x)))

    def sample_transition(self, key: Key, x: Value, **given: Any) -> Value:
        return _values(self.moves(x, given, drawn(key)), self.unknowns)

    def log_likelihood(self, x: Value, observation: Array, **given: Any) -> Array:
        return fitted(log_likelihoods(self._observed(x, given, observation)), observation)

    def sample_observation(self, key: Key, x: Value, **given: Any) -> Array:
        law = self._observed(x, given, jnp.zeros(self.shape))["fn"]
        return jnp.asarray(law.sample(key), jnp.result_type(float))

    def _observed(self, x: Value, given: dict[str, Any], observation: Array) -> Site:
        return next(iter(self.emits(x, given, by_name({}), observation).observed.values()))

    def _log_transition(self, x_next: Value, x: Value, **given: Any) -> Scalar:
        return _total(self.moves(x, given, by_name(x_next)))

    def _transition_from_normal(self, x: Value, z: Array, **given: Any) -> Value:
        return _values(self.moves(x, given, made_of(z, dict(self.normals))), self.unknowns)

    def _prior_from_normal(self, z: Array, **given: Any) -> Value:
        return _values(self.begins(None, given, made_of(z, dict(self.normals))), self.unknowns)

    def _sample_parameters(self, key: Key) -> Value:
        return {name: site["value"] for name, site in self.knows(None, {}, drawn(key)).latent.items()}  # type: ignore[misc]

    def _log_parameters(self, params: Value) -> Scalar:
        return _total(self.knows(None, {}, by_name(params)))  # type: ignore[misc]


def _values(sites: Sites, names: Any) -> Value:
    """The state after a run: sampled, or computed as a deterministic site."""
    found = {**sites.deterministic, **{name: site["value"] for name, site in sites.latent.items()}}
    return {name: jnp.asarray(found[name], jnp.result_type(float)) for name in names}


def _total(sites: Sites) -> Scalar:
    return sum((log_density(site) for site in sites.latent.values()), jnp.zeros(()))


def state_space_model(
    init: Callable, transition: Callable, emission: Callable, parameters: Callable | None, inputs: Any
) -> Model:
    """The model of `init()`, `transition(x)` and `emission(x, y=None)`, which may name `dt`, `time`, `inputs` and, with
    `parameters()`, `params`."""
    begins, moves, emits = Part(init, "init", 0), Part(transition, "transition", 1), Part(emission, "emission", 2)
    knows = None if parameters is None else Part(parameters, "parameters", 0)
    _check_words(begins, moves, emits, knows)
    table = as_table(inputs)
    example = _example(knows, table)
    sites = begins(None, example, at_free_numbers(0.0)).latent
    if not sites:
        raise ModelError("`init` has no latent site: the state is made of its sites. Give it a numpyro.sample.")
    unknowns = {name: bijection_of(site) for name, site in sites.items()}
    x = {name: site["value"] for name, site in sites.items()}
    moved = moves(x, example, at_free_numbers(0.0))
    _check_moved(unknowns, moved)
    seen = find_observed(lambda y, value_of, strict: emits(x, example, value_of, y, strict), str(emits.argument))
    if seen.latent:
        raise ModelError(
            f"the site {next(iter(seen.latent))!r} of `emission` is latent: what is unknown belongs to the state, in "
            "`init` and `transition`, or is integrated out of the emission."
        )
    sampled = list(moved.latent) and set(moved.latent) == set(unknowns)
    normals = {name: normals_of(site) for name, site in sites.items()}
    even = {name: part.size for name, part in unknowns.items()}
    base = NumpyroStateSpaceModel
    written: dict[str, tuple[Callable, Part]] = {
        "sample_prior": (base.sample_prior, begins),
        "log_prior": (base.log_prior, begins),
        "sample_transition": (base.sample_transition, moves),
        "log_likelihood": (base.log_likelihood, emits),
        "sample_observation": (base.sample_observation, emits),
    }
    if sampled:
        written["log_transition"] = (base._log_transition, moves)
    if normals == even:
        written["prior_from_normal"] = (base._prior_from_normal, begins)
    if sampled and {name: normals_of(site) for name, site in moved.latent.items()} == even:
        written["transition_from_normal"] = (base._transition_from_normal, moves)
    methods = {name: naming(method, part.words) for name, (method, part) in written.items()}
    if knows is not None:
        methods |= {"sample_parameters": base._sample_parameters, "log_parameters": base._log_parameters}
    if table is not None:
        methods["sample_inputs"] = lambda self, key: row_at_random(key, self.table)
    made = made_class(getattr(transition, "__name__", "model"), base, unknowns, methods)
    return made(begins, moves, emits, knows, seen.shape, tuple(even.items()), table)


def _check_words(begins: Part, moves: Part, emits: Part, knows: Part | None) -> None:
    for part in (begins, moves, emits, *([] if knows is None else [knows])):
        possible = {"init": {"params"}, "parameters": set()}.get(part.what, {"dt", "time", "inputs", "params"})
        wrong = [word for word in part.words if word not in possible]
        if wrong:
            raise ModelError(f"`{part.what}` names `{wrong[0]}`, which is not given there.")
        if "params" in part.words and knows is None:
            raise ModelError(f"`{part.what}` names `params`: say how they are drawn, `from_numpyro(…, parameters=…)`.")


def _example(knows: Part | None, table: Any) -> dict[str, Any]:
    """Conditions that the functions could meet."""
    one = jnp.ones(())
    params = None
    if knows is not None:
        sites = knows(None, {}, at_free_numbers(0.0)).latent
        for name, site in sites.items():
            if not is_plain(bijection_of(site)):
                raise ModelError(
                    f"the parameter {name!r} is constrained; parameters beside a state are free numbers: give its "
                    "logarithm (or logit) a prior, and take the exponential where it is used."
                )
        if not sites:
            raise ModelError("`parameters` has no latent site: leave it out, or give it a numpyro.sample.")
        params = {name: site["value"] for name, site in sites.items()}
    inputs = jnp.zeros(()) if table is None else first_row(table)
    return {"dt": one, "time": one, "inputs": inputs, "params": params}


def _check_moved(unknowns: dict, moved: Sites) -> None:
    there = {*moved.latent, *moved.deterministic}
    if moved.observed:
        raise ModelError(
            f"the site {next(iter(moved.observed))!r} of `transition` is observed: that is for `emission`."
        )
    for name in unknowns:
        if name not in there:
            raise ModelError(
                f"`transition` has no site {name!r}, which `init` has: sample it, or say with "
                f"numpyro.deterministic({name!r}, …) what becomes of it."
            )
        if name in moved.latent:
            check_fixed({name: bijection_of(moved.latent[name])}, {name: unknowns[name]}, "where `init` has it")
        elif jnp.shape(moved.deterministic[name]) != unknowns[name].shape:
            raise ModelError(
                f"the site {name!r} has shape {jnp.shape(moved.deterministic[name])} in `transition` and "
                f"{unknowns[name].shape} in `init`."
            )
