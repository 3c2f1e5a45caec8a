"""Numbers that float32 holds badly, and observations far in the tail: right, or flagged, never silently wrong."""

import equinox as eqx
import jax
import numpy as np
import pytest
from jax import numpy as jnp
from jaxtyping import Array

from pfbr.inference.adaptive.method import Adaptive
from pfbr.inference.method import Stream, record
from pfbr.models.base import Model

ROWS, WRONG = 40, 0.5


class Level(Model):
    """x about `centre`, with a normal prior or one that is bent away from it; y ~ N(x, 1)."""

    centre: Array
    spread: Array
    bend: Array  # 0: normal, and so the closed form holds
    dim: int = eqx.field(static=True, default=1)

    def sample_prior(self, key):
        return self.centre + self.spread * jax.random.normal(key, (1,))

    def log_prior(self, x):
        z = (x[0] - self.centre) / self.spread
        return -0.5 * z**2 - self.bend * jnp.log(jnp.cosh(jnp.clip(z, -30, 30)))

    def log_likelihood(self, x, observation):
        return -0.5 * (observation[0] - x[0]) ** 2

    def sample_observation(self, key, x):
        return x + jax.random.normal(key, (1,))


def truth(model, ys):
    """Mean and standard deviation after each row, on a grid in float64."""
    total, count, out = 0.0, 0, []
    c, s, b = (float(v) for v in (model.centre, model.spread, model.bend))
    for y in ys:
        total, count = total + float(y) - c, count + 1
        middle = total / (count + 1 / s**2)
        x = middle + np.linspace(-12, 12, 4001) / np.sqrt(count + 1 / s**2)
        z = np.clip(x / s, -30, 30)
        log = -0.5 * (x / s) ** 2 - b * np.log(np.cosh(z)) - 0.5 * count * (x - total / count) ** 2
        weights = np.exp(log - log.max())
        weights /= weights.sum()
        mean = weights @ x
        out.append((c + mean, np.sqrt(weights @ (x - mean) ** 2)))
    return np.array(out).T


run = eqx.filter_jit(lambda key, model, ys: record(key, Adaptive(history=128), model, Stream(ys), 256))
NORMAL = np.random.default_rng(0).standard_normal(ROWS)
CASES = {
    "offset of 1e5": (1e5, 3.0, 0.0, lambda y: y + 1e5),
    "offset of 1e5, bent": (1e5, 3.0, 1.0, lambda y: y + 1e5),
    "offset of 1e7": (1e7, 3.0, 0.0, lambda y: y + 1e7),
    "outlier of 50": (0.0, 3.0, 0.0, lambda y: np.where(np.arange(ROWS) == 30, 50.0, y)),
    "outlier of 50, bent": (0.0, 3.0, 1.0, lambda y: np.where(np.arange(ROWS) == 30, 50.0, y)),
    "outlier of 1000": (0.0, 3.0, 0.0, lambda y: np.where(np.arange(ROWS) == 30, 1000.0, y)),
    "outlier of 1000, bent": (0.0, 3.0, 1.0, lambda y: np.where(np.arange(ROWS) == 30, 1000.0, y)),
    "outlier at once, bent": (0.0, 1.0, 1.0, lambda y: np.where(np.arange(ROWS) == 0, 1000.0, y)),
    "identical, bent": (0.0, 3.0, 1.0, lambda y: np.full(ROWS, 0.7)),
    "a tiny unit": (0.0, 1e-6, 0.0, lambda y: y),
}


FAST = ("offset of 1e5", "outlier of 50", "outlier of 1000, bent")


@pytest.mark.parametrize(
    "name", [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in CASES]
)
def test_right_or_flagged(name):
    centre, spread, bend, stream = CASES[name]
    model = Level(jnp.asarray(centre), jnp.asarray(spread), jnp.asarray(bend))
    ys = stream(NORMAL).astype(np.float32)
    said = run(jax.random.key(1), model, jnp.asarray(ys[:, None]))
    weights = np.exp(np.asarray(said.particles.log_weights, float))
    points = np.asarray(said.particles.points[..., 0], float)
    mean = np.sum(weights * points, axis=1)
    sd = np.sqrt(np.sum(weights * (points - mean[:, None]) ** 2, axis=1))
    known_mean, known_sd = truth(model, ys)
    wrong = ~((np.abs(mean - known_mean) < WRONG * known_sd) & (np.abs(sd / known_sd - 1) < WRONG))
    flagged = np.asarray(said.info.flagged)
    assert not np.any(wrong & ~flagged), f"rows {np.flatnonzero(wrong & ~flagged)} wrong without a flag"
    if centre < 1e5:  # what float32 holds is right, not only flagged
        # behind a first row a thousand spreads away, each of the next leads a hundred posterior spreads back: some of
        # them are only flagged
        assert not np.any(wrong[10 if name.startswith("outlier at once") else 0 :])


@pytest.mark.slow
def test_ten_thousand_identical_rows():
    """Four thousand kept; the spread is that of all of them, or a flag says that it is not."""
    model = Level(jnp.asarray(0.0), jnp.asarray(3.0), jnp.asarray(0.0))
    ys = jnp.full((10_000, 1), 0.7)
    said = eqx.filter_jit(lambda k: record(k, Adaptive(), model, Stream(ys), 256).last)(jax.random.key(0))
    state = said.own
    weights = jnp.exp(state.log_weights)
    mean = weights @ state.points[:, 0]
    sd = jnp.sqrt(weights @ (state.points[:, 0] - mean) ** 2)
    np.testing.assert_allclose(mean, 0.7, atol=0.003)
    np.testing.assert_allclose(sd, 0.01, rtol=0.2)
