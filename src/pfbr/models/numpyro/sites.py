"""What a NumPyro function says when it is run once: its sites by kind; what cannot be used is refused by name."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
from jax import numpy as jnp
from jaxtyping import Array
from numpyro import handlers
from numpyro.distributions import Distribution, ImproperUniform, Independent
from numpyro.primitives import Messenger

from pfbr.errors import ModelError
from pfbr.typing import Key, Scalar

Site = dict[str, Any]  # NumPyro's message: name, distribution (`fn`), value, plates around it (`cond_indep_stack`)

REFUSED = {
    "param": "the parameter {name!r} (numpyro.param) is one to optimise: give it a prior with numpyro.sample.",
    "mutable": "{name!r} (numpyro.mutable) changes from call to call, and a model must not.",
    "control_flow": "a scan over time is not for the function of one row: write `init`, `transition` and `emission`.",
    "prng_key": "numpyro.prng_key() draws noise that no density knows: use numpyro.sample.",
}


@dataclasses.dataclass(frozen=True)
class Sites:
    """The sites of one run, in their order."""

    latent: dict[str, Site]
    observed: dict[str, Site]
    deterministic: dict[str, Any]


class _Latents(Messenger):
    """Gives every latent site its value."""

    def __init__(self, value_of: Callable[[Site], Any], strict: bool):
        self.value_of, self.strict = value_of, strict
        super().__init__(None)

    def process_message(self, msg: Site) -> None:
        kind = msg["type"]
        if kind in REFUSED:
            raise ModelError(REFUSED[kind].format(name=msg.get("name")))
        if kind == "plate":
            size, part = msg["args"]
            if part is not None and part != size:
                raise ModelError(
                    f"the plate {msg['name']!r} takes {part} of {size} rows at random: leave `subsample_size` out, "
                    "rows come one by one."
                )
        elif kind == "sample" and not msg["is_observed"]:
            if self.strict:
                _refuse(msg)
            msg["value"] = self.value_of(msg)


def run_once(function: Callable, given: dict[str, Any], value_of: Callable[[Site], Any], strict: bool = True) -> Sites:
    """The sites of `function(**given)`, its latent ones at the values that `value_of` gives them."""
    with handlers.trace() as trace, _Latents(value_of, strict):
        function(**given)
    samples = {name: site for name, site in trace.items() if site["type"] == "sample"}
    return Sites(
        {name: site for name, site in samples.items() if not site["is_observed"]},
        {name: site for name, site in samples.items() if site["is_observed"]},
        {name: site["value"] for name, site in trace.items() if site["type"] == "deterministic"},
    )


def by_name(values: dict[str, Any]) -> Callable[[Site], Any]:
    """Values that are given; a site without one is there for some rows only."""

    def value_of(site: Site) -> Any:
        if site["name"] not in values:
            raise ModelError(
                f"the site {site['name']!r} was not there when the model was made (its unknowns are "
                f"{', '.join(values)}): every row must have the same sites."
            )
        if jnp.shape(values[site["name"]]) != shape_of(site):
            raise ModelError(
                f"the site {site['name']!r} had shape {jnp.shape(values[site['name']])} when the model was made, and "
                f"has {shape_of(site)} with this row. Give `from_numpyro` a table of inputs, `inputs=`, to read shapes "
                "off."
            )
        return values[site["name"]]

    return value_of


def drawn(key: Key) -> Callable[[Site], Array]:
    """A draw for each site, in their order."""
    count = iter(range(10**6))
    return lambda site: site["fn"].sample(jax.random.fold_in(key, next(count)), site["kwargs"]["sample_shape"])


def log_density(site: Site) -> Scalar:
    """Of a latent site at its value."""
    return jnp.sum(jnp.asarray(site["fn"].log_prob(site["value"]), jnp.result_type(float)))


def log_likelihoods(site: Site) -> Array:
    """Of an observed site at its value: one number for each component where the distribution has them independent.

    What lies outside of the support is −inf there, with a gradient of zero: a stand-in for a gap may lie there, and
    0 · NaN is NaN whatever mask comes later.
    """
    law, value = site["fn"], site["value"]
    while isinstance(law, Independent):  # .to_event(1) of independent components
        law = law.base_dist
    value = jnp.asarray(value, int if is_discrete(law) else jnp.result_type(float))
    try:
        inside = law.support(value)
        safe = jnp.where(_over_event(inside, law), value, law.support.feasible_like(value))
        found = jnp.where(inside, law.log_prob(safe), -jnp.inf)
    except NotImplementedError:  # a distribution that does not tell where it lives
        found = law.log_prob(value)
    return found if site["scale"] is None else site["scale"] * found


def is_discrete(law: Distribution) -> bool:
    try:
        return bool(law.support.is_discrete)
    except NotImplementedError:
        return False


def shape_of(site: Site) -> tuple[int, ...]:
    return tuple(site["kwargs"].get("sample_shape", ())) + tuple(site["fn"].shape())


def plates_of(site: Site) -> dict[str, int]:
    return {frame.name: frame.size for frame in site["cond_indep_stack"]}


def _over_event(inside: Array, law: Distribution) -> Array:
    return jnp.reshape(inside, jnp.shape(inside) + (1,) * law.event_dim)


def _refuse(site: Site) -> None:
    """Latent sites that no particle can carry."""
    name, law = site["name"], site["fn"]
    if not isinstance(law, Distribution):
        raise ModelError(f"the site {name!r} has no NumPyro distribution; got {type(law).__name__}.")
    if is_discrete(law):
        raise ModelError(
            f"the site {name!r} is a discrete unknown ({type(law).__name__}). Sum it out of the likelihood, for "
            "example with numpyro.distributions.MixtureSameFamily in place of an indicator."
        )
    inner = law
    while hasattr(inner, "base_dist") and not isinstance(inner, ImproperUniform):
        inner = inner.base_dist
    if isinstance(inner, ImproperUniform):
        raise ModelError(f"the site {name!r} has an improper prior, and nothing to draw it from: give it a proper one.")
    if site["scale"] is not None:
        raise ModelError(f"the prior of {name!r} is scaled (handlers.scale): it would not be normalised.")
