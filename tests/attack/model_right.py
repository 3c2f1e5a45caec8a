"""Models that are unusual, and right: a check that refuses these would be worse than none."""

import jax
import numpy as np
from jax import numpy as jnp

import pfbr
from pfbr.models import GaussianMean, MiniBatch
from tests.attack.case import Case
from tests.attack.model_kinds import Driven, Learning, Moving, Mute, Named, Static, changed, passes


def right() -> list[Case]:
    def triangle(s, x, o):  # bounded noise: −inf far away
        return jnp.sum(jnp.where(jnp.abs(o - x) < 1, 0.0, -jnp.inf) - jnp.log(2.0))

    def counts(s, key, x):
        return jax.random.poisson(key, jnp.exp(x))

    def searches(s, x, o):  # an index that depends on x, clamped on purpose
        table = jnp.linspace(0.0, 1.0, 5)
        return -0.5 * jnp.sum((o - table[jnp.clip((x * 3).astype(int), 0, 4)]) ** 2)

    def loops(s, x, o):
        return jax.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] - c[0] * x[0] ** 2), (0, 0.0))[1]

    known_start = {"sample_prior": lambda s, key: jnp.ones(2), "log_prior": lambda s, x: jnp.zeros(())}
    return [
        passes("right: static", Static),
        passes("right: moving", Moving),
        passes("right: without draws", Mute),
        passes("right: with inputs that it cannot draw", Driven),
        passes("right: named", Named),
        passes("right: with parameters", Learning),
        passes(
            "right: bounded noise",
            lambda: changed(
                log_likelihood=triangle,
                sample_observation=lambda s, key, x: x + jax.random.uniform(key, (2,), minval=-1.0),
            ),
        ),
        passes(
            "right: counts",
            lambda: changed(sample_observation=counts, log_likelihood=lambda s, x, o: jnp.sum(o * x - jnp.exp(x))),
        ),
        passes(
            "right: one number for each component", lambda: changed(log_likelihood=lambda s, x, o: -0.5 * (o - x) ** 2)
        ),
        passes("right: a known start", lambda: changed(Moving, **known_start)),
        passes(
            "right: dynamics without noise",
            lambda: changed(
                Moving, sample_transition=lambda s, key, x: 0.9 * x, log_transition=pfbr.StateSpaceModel.log_transition
            ),
        ),
        passes(
            "right: an index clamped on purpose",
            lambda: changed(
                log_likelihood=lambda s, x, o: -jnp.sum((o - jnp.take(x, jnp.array([0, 9]), mode="clip")) ** 2)
            ),
        ),
        passes("right: any arguments", lambda: changed(log_prior=lambda *args, **given: -0.5 * jnp.sum(args[1] ** 2))),
        passes("right: a clamped index", lambda: changed(log_likelihood=searches)),
        passes("right: a loop inside", lambda: changed(log_likelihood=loops)),
        passes(
            "right: half precision inside",
            lambda: changed(log_prior=lambda s, x: jnp.sum(x.astype(jnp.float16)).astype(jnp.float32) * 0),
        ),
        passes("right: a flat likelihood", lambda: changed(log_likelihood=lambda s, x, o: 0.0)),
        passes("right: a constant log_prior", lambda: changed(log_prior=lambda s, x: -1.5)),
        passes(
            "right: far draws",
            lambda: changed(
                sample_prior=lambda s, key: 1e6 * jax.random.normal(key, (2,)),
                log_prior=lambda s, x: -0.5 * jnp.sum((x / 1e6) ** 2),
            ),
        ),
        passes(
            "right: a uniform prior",
            lambda: changed(
                sample_prior=lambda s, key: jax.random.uniform(key, (2,)),
                log_prior=lambda s, x: jnp.where(jnp.all((x > 0) & (x < 1)), 0.0, -jnp.inf),
            ),
        ),
        passes(
            "right: NumPy constants",
            lambda: changed(log_likelihood=lambda s, x, o: -0.5 * jnp.sum((o - np.eye(2, dtype=np.float32) @ x) ** 2)),
        ),
        passes(
            "right: a default argument",
            lambda: changed(log_likelihood=lambda s, x, o, scale=2.0: -0.5 * jnp.sum(((o - x) / scale) ** 2)),
        ),
        passes(
            "right: observed is named",
            lambda: changed(
                log_likelihood=lambda s, x, o, *, observed: jnp.sum(jnp.where(observed, -0.5 * (o - x) ** 2, 0.0))
            ),
        ),
        passes("right: a mini-batch", lambda: MiniBatch(GaussianMean(2), 3)),
        passes("right: a last index", lambda: changed(log_likelihood=lambda s, x, o: -0.5 * (o[-1] - x[-2]) ** 2)),
        passes(
            "right: slices beyond the end",
            lambda: changed(log_likelihood=lambda s, x, o: -0.5 * jnp.sum((o[:9] - x[:7]) ** 2)),
        ),
    ]
