"""Models that JAX cannot trace, that draw without their key, or that look outside an array."""

import jax
import numpy as np
from jax import numpy as jnp

from tests.attack.case import Case
from tests.attack.model_kinds import Moving, changed, tried


class _Counter:
    value = 0

    def next(self) -> float:
        self.value += 1
        return float(self.value)


RNG, COUNT = np.random.default_rng(0), _Counter()


def tracing() -> list[Case]:
    x_of_five = lambda s, x, *o: -0.5 * x[5] ** 2
    return [
        tried(
            "sample_prior draws with NumPy",
            lambda: changed(sample_prior=lambda s, key: jnp.asarray(RNG.normal(size=2), jnp.float32)),
            "sample_prior.*key",
        ),
        tried(
            "sample_prior is a constant", lambda: changed(sample_prior=lambda s, key: jnp.ones(2)), "sample_prior.*key"
        ),
        tried(
            "sample_prior has a key of its own",
            lambda: changed(sample_prior=lambda s, key: jax.random.normal(jax.random.key(0), (2,))),
            "sample_prior.*key",
        ),
        tried(
            "sample_prior of a moving unknown draws with NumPy",
            lambda: changed(Moving, sample_prior=lambda s, key: jnp.asarray(RNG.normal(size=2), jnp.float32)),
            "sample_prior.*(key|twice)",
        ),
        tried(
            "sample_transition draws with NumPy",
            lambda: changed(Moving, sample_transition=lambda s, key, x: x + RNG.normal()),
            "sample_transition.*(key|twice)",
        ),
        tried(
            "sample_observation draws with NumPy",
            lambda: changed(sample_observation=lambda s, key, x: x + RNG.normal(size=2).astype(np.float32)),
            "sample_observation.*(key|twice)",
        ),
        tried(
            "log_likelihood counts its calls",
            lambda: changed(log_likelihood=lambda s, x, o: -COUNT.next() * jnp.sum((o - x) ** 2)),
            "log_likelihood.*twice",
        ),
        tried(
            "neither prior nor transition is random",
            lambda: changed(Moving, sample_prior=lambda s, key: jnp.ones(2), sample_transition=lambda s, key, x: x),
            "sample_prior.*key",
        ),
        tried(
            "log_likelihood uses NumPy",
            lambda: changed(log_likelihood=lambda s, x, o: np.sum(np.square(np.asarray(x)))),
            "log_likelihood.*jax.numpy",
        ),
        tried(
            "log_prior uses NumPy",
            lambda: changed(log_prior=lambda s, x: float(np.asarray(x).sum())),
            "log_prior.*jax.numpy",
        ),
        tried(
            "log_likelihood branches on x",
            lambda: changed(log_likelihood=lambda s, x, o: 0.0 if x[0] > 0 else -1.0),
            "log_likelihood.*jnp.where",
        ),
        tried(
            "log_prior branches on x",
            lambda: changed(log_prior=lambda s, x: jnp.sum(x) if x[1] > 0 else -1.0),
            "log_prior.*jnp.where",
        ),
        tried("log_likelihood loops on x", lambda: changed(log_likelihood=_loops), "log_likelihood.*jnp.where|lax"),
        tried(
            "sample_transition takes float(x)",
            lambda: changed(Moving, sample_transition=lambda s, key, x: x * float(x[0])),
            "sample_transition.*jnp",
        ),
        tried(
            "sample_prior takes int(key)",
            lambda: changed(sample_prior=lambda s, key: jnp.ones(2) * int(jax.random.randint(key, (), 0, 3))),
            "sample_prior",
        ),
        tried(
            "log_likelihood makes a shape of x",
            lambda: changed(log_likelihood=lambda s, x, o: jnp.sum(jnp.zeros(jnp.sum(x).astype(int)))),
            "log_likelihood",
        ),
        tried("log_likelihood writes into x", lambda: changed(log_likelihood=_writes), "log_likelihood"),
        tried("x[5] of two in log_prior", lambda: changed(log_prior=x_of_five), r"log_prior.*(5|index)"),
        tried("x[5] of two in log_likelihood", lambda: changed(log_likelihood=x_of_five), r"log_likelihood.*(5|index)"),
        tried(
            "x[-3] of two in log_likelihood",
            lambda: changed(log_likelihood=lambda s, x, o: -(x[-3] ** 2)),
            r"log_likelihood.*(3|index)",
        ),
        tried(
            "observation[2] of two",
            lambda: changed(log_likelihood=lambda s, x, o: -((o[2] - x[0]) ** 2)),
            r"log_likelihood.*(2|index)",
        ),
        tried(
            "x[[0, 7]] of two",
            lambda: changed(log_likelihood=lambda s, x, o: -jnp.sum(x[jnp.array([0, 7])] ** 2)),
            r"log_likelihood.*(7|index)",
        ),
        tried(
            "x[5] of two in sample_transition",
            lambda: changed(
                Moving, sample_transition=lambda s, key, x: x.at[0].set(x[5]) + jax.random.normal(key, (2,))
            ),
            r"sample_transition.*(5|index)",
        ),
        tried(
            "x.at[4].set of two in sample_transition",
            lambda: changed(
                Moving, sample_transition=lambda s, key, x: x.at[4].set(0.0) + jax.random.normal(key, (2,))
            ),
            r"sample_transition.*(4|index)",
        ),
        tried(
            "x[5] inside a loop",
            lambda: changed(log_likelihood=lambda s, x, o: jax.lax.fori_loop(0, 3, lambda i, t: t - x[5] ** 2, 0.0)),
            r"log_likelihood.*(5|index)",
        ),
        tried(
            "x[5] behind jit",
            lambda: changed(log_likelihood=lambda s, x, o: jax.jit(lambda y: -(y[5] ** 2))(x)),
            r"log_likelihood.*(5|index)",
        ),
    ]


def _loops(self, x, observation):
    total = x[0]
    while total > 0:
        total = total - 1.0
    return total


def _writes(self, x, observation):
    x[0] = 1.0
    return jnp.sum(x)
