"""Models whose densities and draws are no finite numbers."""

import jax
from jax import numpy as jnp

from tests.attack.case import Case
from tests.attack.model_kinds import Learning, Moving, changed, tried


def numbers() -> list[Case]:
    def at_some(value):
        return lambda s, x, *o: jnp.where(x[0] > 0, value, 0.0) + 0.0 * jnp.sum(x)

    infinite = lambda s, key: jax.random.normal(key, (2,)) / 0.0
    return [
        tried(
            "sample_prior draws NaN",
            lambda: changed(sample_prior=lambda s, key: jnp.full(2, jnp.nan)),
            "sample_prior.*(NaN|nan)",
        ),
        tried("sample_prior draws inf", lambda: changed(sample_prior=infinite), "sample_prior.*inf"),
        tried(
            "sample_prior draws NaN at times", lambda: changed(sample_prior=_nan_at_times), "sample_prior.*(NaN|nan)"
        ),
        tried("log_prior is NaN", lambda: changed(log_prior=lambda s, x: jnp.nan * x[0]), "log_prior.*NaN"),
        tried("log_prior is NaN at some", lambda: changed(log_prior=at_some(jnp.nan)), "log_prior.*NaN"),
        tried("log_prior is inf", lambda: changed(log_prior=at_some(jnp.inf)), r"log_prior.*\+inf"),
        tried("log_prior is -inf at its draws", lambda: changed(log_prior=at_some(-jnp.inf)), "log_prior.*−inf"),
        tried(
            "log_prior of a negative number",
            lambda: changed(log_prior=lambda s, x: jnp.sum(jnp.log(x))),
            "log_prior.*NaN",
        ),
        tried(
            "log_likelihood is NaN",
            lambda: changed(log_likelihood=lambda s, x, o: jnp.nan * x[0]),
            "log_likelihood.*NaN",
        ),
        tried("log_likelihood is NaN at some", lambda: changed(log_likelihood=at_some(jnp.nan)), "log_likelihood.*NaN"),
        tried(
            "log_likelihood is inf at some", lambda: changed(log_likelihood=at_some(jnp.inf)), r"log_likelihood.*\+inf"
        ),
        tried(
            "log_likelihood rules its own draws out",
            lambda: changed(log_likelihood=lambda s, x, o: x[0] * 0.0 - jnp.inf),
            "log_likelihood.*−inf",
        ),
        tried(
            "a component of log_likelihood is NaN",
            lambda: changed(log_likelihood=lambda s, x, o: jnp.log(o - x)),
            "log_likelihood.*NaN",
        ),
        tried(
            "sample_transition gives NaN",
            lambda: changed(Moving, sample_transition=lambda s, key, x: jnp.sqrt(x)),
            "sample_transition.*(NaN|nan)",
        ),
        tried(
            "sample_transition gives inf",
            lambda: changed(Moving, sample_transition=lambda s, key, x: x / 0.0),
            "sample_transition.*inf",
        ),
        tried(
            "log_transition is NaN",
            lambda: changed(Moving, log_transition=lambda s, y, x: jnp.nan * x[0]),
            "log_transition.*NaN",
        ),
        tried(
            "log_transition is inf",
            lambda: changed(Moving, log_transition=lambda s, y, x: jnp.inf + x[0]),
            r"log_transition.*\+inf",
        ),
        tried(
            "log_transition rules its draws out",
            lambda: changed(Moving, log_transition=lambda s, y, x: -jnp.inf + x[0]),
            "log_transition.*−inf",
        ),
        tried(
            "sample_observation gives NaN",
            lambda: changed(sample_observation=lambda s, key, x: x * jnp.nan),
            "sample_observation.*(NaN|nan)",
        ),
        tried(
            "log_parameters is NaN",
            lambda: changed(Learning, log_parameters=lambda s, params: jnp.nan * params["rate"]),
            "log_parameters.*NaN",
        ),
        tried(
            "sample_parameters draws NaN",
            lambda: changed(Learning, sample_parameters=lambda s, key: {"rate": jnp.nan * jax.random.uniform(key)}),
            "sample_parameters.*(NaN|nan)",
        ),
    ]


def _nan_at_times(self, key):
    x = jax.random.normal(key, (2,))
    return jnp.where(x[0] > 0, x, jnp.nan)
