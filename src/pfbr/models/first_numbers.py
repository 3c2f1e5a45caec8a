"""The numbers that a model gives at a handful of its own draws: finite, different from key to key, no +inf."""

from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

from pfbr.errors import ModelError
from pfbr.models.base import Model, StateSpaceModel, has_observations, has_parameters, offers
from pfbr.models.conditions import Conditions, bind
from pfbr.models.faults import in_words
from pfbr.models.needs import all_needs

DRAWS = 8
# A few calls in all: compiling well would take longer than it saves. A jaxlib with other options compiles as ever.
_QUICKLY = {
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
    "xla_cpu_use_fusion_emitters": False,
    "xla_cpu_parallel_codegen_split_count": 1,
}
SIZE = 10**6  # unknowns beyond which the numbers are not looked at: they take as long as an update


def check_numbers(model: Model) -> None:
    """Draw parameters, inputs, unknowns and observations from the model, and look at what its densities say there."""
    if int(model.dim) > SIZE:
        return
    found = _computed(model, _at_draws, model, jax.random.split(jax.random.key(20), DRAWS))
    name, moves = type(model).__name__, isinstance(model, StateSpaceModel)
    for method in ("sample_parameters", "sample_inputs"):
        for leaf in jax.tree.leaves(found.get(method)):
            _finite(name, method, leaf, "Every draw must be finite.")
    if "log_parameters" in found:
        _number(name, "log_parameters", found["log_parameters"], "at a draw of `sample_parameters`")
    advice = "Every draw must be finite, and inside the constraints where there are any (0 is not positive)."
    _finite(name, "sample_prior", found["x"], advice)
    same_start = np.all(found["x"] == found["x"][:1])
    if same_start and not (moves and np.any(found["moved"] != found["moved again"])):
        raise ModelError(
            f"`{name}.sample_prior` gave {DRAWS} keys one and the same draw, {_short(found['x'][0])}: all particles "
            "would be equal. Draw with jax.random and the key that is passed, not with NumPy or a key of your own."
        )
    _number(name, "log_prior", found["log_prior"], "at a draw of `sample_prior`", found["x"])
    if moves:
        _finite(name, "sample_transition", found["moved"], "Every move must be finite.")
    if "log_transition" in found:
        where = "at a draw of `sample_transition`"
        _number(name, "log_transition", found["log_transition"], where, found["moved"])
    if "observation" in found:
        _finite(name, "sample_observation", found["observation"], "Every draw must be finite.")
        where = "at a draw of `sample_observation` for that x"
        # some draws ruled out are for `pfbr check` to judge; all of them leave nothing to learn from
        some = bool(np.any(np.isfinite(found["log_likelihood"])))
        _number(name, "log_likelihood", found["log_likelihood"], where, found["state"], may_rule_out=some)
        where = "at a draw of `sample_observation` for another x"
        _number(name, "log_likelihood", found["elsewhere"], where, found["state"], may_rule_out=True)


def check_likelihood_values(model: Model, conditions: Conditions, observation: Any) -> None:
    """The likelihood of an observation that has come, at a handful of draws: NaN and +inf are refused."""
    if int(model.dim) > SIZE:
        return
    keys = jax.random.split(jax.random.key(20), DRAWS)
    states, values = _computed(model, _of_observation, model, keys, conditions, observation)
    where = f"at the observation {_short(observation)}"
    _number(type(model).__name__, "log_likelihood", values, where, states, may_rule_out=True)


def _at_draws(model: Any, keys: Any) -> dict[str, Any]:
    conditions, found = jax.vmap(lambda key: _drawn(model, key))(keys)
    if has_observations(model):
        observations = found["observation"]

        def of_pair(given: Conditions, x: Any, pair: Any) -> Any:
            return jax.vmap(lambda o: bind(model, given, shape=o.shape).log_likelihood(x, o))(pair)

        # each x with its own observation, and with that of another x
        pairs = jnp.stack([observations, jnp.roll(observations, 1, axis=0)], axis=1)
        values = jax.vmap(of_pair)(conditions, found["state"], pairs)
        found["log_likelihood"], found["elsewhere"] = values[:, 0], values[:, 1]
    return found


def _drawn(model: Any, key: Any) -> tuple[Conditions, dict[str, Any]]:
    """One of everything, each from its own key."""
    keys = jax.random.split(key, 7)
    words, found = all_needs(model), {}
    params = inputs = dt = None
    if has_parameters(model):
        params = found["sample_parameters"] = model.sample_parameters(keys[0])
        found["log_parameters"] = jnp.asarray(model.log_parameters(params), jnp.result_type(float))
    if "inputs" in words:
        inputs = found["sample_inputs"] = model.sample_inputs(keys[1])
    if words & {"dt", "time"}:
        dt = jnp.asarray(model.sample_dt(keys[2]), jnp.result_type(float))
        dt = jnp.where(dt > 0, dt, 1.0)
    conditions = Conditions(dt, dt if "time" in words else None, inputs, None, params if "params" in words else None)
    bound: Any = bind(model, conditions)
    x = found["x"] = found["state"] = bound.sample_prior(keys[3])
    found["log_prior"] = bound.log_prior(x)
    if isinstance(model, StateSpaceModel):
        moved = jax.vmap(lambda key: bound.sample_transition(key, x))(keys[4:6])
        found["moved"], found["moved again"], found["state"] = moved[0], moved[1], moved[0]
        if offers(model, "log_transition"):
            found["log_transition"] = bound.log_transition(moved[0], x)
    if has_observations(model):
        drawn = bound.sample_observation(keys[6], found["state"])
        found["observation"] = jnp.asarray(drawn, jnp.result_type(float))
    return conditions, found


def _of_observation(model: Any, keys: Any, conditions: Conditions, observation: Any) -> tuple[Any, Any]:
    def one(key: Any) -> tuple[Any, Any]:
        given = conditions
        if has_parameters(model):
            params = model.sample_parameters(jax.random.fold_in(key, 1))
            given = eqx.tree_at(lambda c: c.params, conditions, params, is_leaf=lambda leaf: leaf is None)
        bound: Any = bind(model, given, shape=observation.shape)
        x = bound.sample_prior(key)
        if isinstance(model, StateSpaceModel):
            x = bound.sample_transition(jax.random.fold_in(key, 2), x)
        return x, bound.log_likelihood(x, observation)

    return jax.vmap(one)(keys)


_JITTED = {
    function: [eqx.filter_jit(function, compiler_options=_QUICKLY), eqx.filter_jit(function)]  # type: ignore
    for function in (_at_draws, _of_observation)
}


def _computed(model: Model, function: Any, *args: Any) -> Any:
    quick, plain = _JITTED[function]
    try:
        try:
            found = quick(*args)
        except jax.errors.JaxRuntimeError as error:
            if "xla_" not in str(error):
                raise
            found = plain(*args)
        return jax.tree.map(np.asarray, found)
    except (Exception, SystemExit) as error:
        said, advice = in_words(error)
        raise ModelError(f"{type(model).__name__} failed at its own draws: {said} {advice}") from error


def _finite(name: str, method: str, values: np.ndarray, advice: str) -> None:
    flat = np.asarray(values, float).reshape(len(values), -1)
    wrong = ~np.isfinite(flat).all(axis=1)
    if wrong.any():
        what = "NaN" if np.isnan(flat).any() else "inf"
        raise ModelError(f"`{name}.{method}` drew {what} for {wrong.sum()} of {len(flat)} keys. {advice}")


def _number(
    name: str, method: str, values: np.ndarray, where: str, at: np.ndarray | None = None, *, may_rule_out: bool = False
) -> None:
    """A log density: never NaN, never +inf, and not −inf at its own draws."""
    values = np.asarray(values, float)
    faults = {"NaN": np.isnan(values), "+inf": np.isposinf(values)}
    if not may_rule_out:
        faults["−inf"] = np.isneginf(values)
    advice = {
        "NaN": "What is impossible has −inf; look for 0/0, log of a negative number, inf − inf.",
        "+inf": "A density is finite: look for a scale that becomes 0, or a division by 0.",
        "−inf": "The draw lies where the density is 0: make the two belong together (`pfbr check` compares them).",
    }
    for what, wrong in faults.items():
        if wrong.any():
            place = "" if at is None else f", x = {_short(at[int(np.argmax(wrong))])}"
            raise ModelError(f"`{name}.{method}` is {what} {where}{place}. {advice[what]}")


def _short(values: Any) -> str:
    flat = np.ravel(np.asarray(values, float))
    text = ", ".join(f"{value:.4g}" for value in flat[:4])
    return f"[{text}{', …' if flat.size > 4 else ''}]"
