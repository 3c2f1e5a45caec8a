"""Four posteriors in the plane that no Gaussian fits: ranges, a banana, a ring, two modes. Truth by grid."""

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

from benchmarks.static.densities import normal
from benchmarks.static.problem import Posterior, Problem
from pfbr.models.base import Model

ROWS = 50
REACH = 5.0  # of the grid, in prior standard deviations
CELLS = (201, 201, 701)  # points along an axis: two looks to find where the mass is, the last one counts


class Plane(Model):
    prior_sd: float = eqx.field(static=True, default=2.0)
    dim: int = eqx.field(static=True, default=2)

    def sample_prior(self, key):
        return self.prior_sd * jax.random.normal(key, (2,))

    def log_prior(self, x):
        return jnp.sum(normal(x, 0.0, self.prior_sd))


class RangeOnly(Plane):
    """Distances to beacons all over the place, one at a time; inputs are where they stand."""

    def log_likelihood(self, x, observation, *, inputs):
        return normal(observation[0], jnp.sqrt(jnp.sum((x - inputs) ** 2) + 1e-12), 0.3)


class Banana(Plane):
    """y ~ N(x0 + x1², 0.5); every fifth row says a little about x1 itself. Inputs say which."""

    def log_likelihood(self, x, observation, *, inputs):
        mean = inputs[0] * x[1] + inputs[1] * (x[0] + x[1] ** 2)
        return normal(observation[0], mean, 2.0 * inputs[0] + 0.5 * inputs[1])


class Ring(Plane):
    """y ~ N(|x|, 0.3): a ring for ever."""

    def log_likelihood(self, x, observation):
        return normal(observation[0], jnp.sqrt(jnp.sum(x**2) + 1e-12), 0.3)


class TwoModes(Plane):
    """y ~ ½ N(x0, 1) + ½ N(x0 + x1, 1) with (1, −2), equally well (−1, 2)."""

    prior_sd: float = eqx.field(static=True, default=1.0)

    def log_likelihood(self, x, observation):
        first, second = normal(observation[0], x[0], 1.0), normal(observation[0], x[0] + x[1], 1.0)
        return jnp.logaddexp(first, second) - jnp.log(2.0)


class PlaneProblem(Problem):
    def _posterior(self, stage: int) -> Posterior:
        """On a grid in float64: a coarse look, then twice closer."""
        reach = REACH * self.model.prior_sd
        low, high = np.full(2, -reach), np.full(2, reach)
        for cells in CELLS:
            axes = [np.linspace(a, b, cells) for a, b in zip(low, high, strict=True)]
            points = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 2)
            with jax.enable_x64(True):
                joint = lambda x: self.log_joint(x, stage)
                density = np.asarray(jax.lax.map(joint, jnp.asarray(points), batch_size=4096))
            near = points[density > density.max() - 18]
            step = np.array([a[1] - a[0] for a in axes])
            low, high = near.min(0) - 2 * step, near.max(0) + 2 * step
        weights = np.exp(density - density.max())
        evidence = density.max() + np.log(weights.sum() * np.prod(step))
        weights /= weights.sum()
        mean = weights @ points
        centred = points - mean
        return Posterior(mean, (weights[:, None] * centred).T @ centred, evidence, 0.0)


def problem(name, seed, model, y, inputs=None) -> Problem:
    return PlaneProblem(name, seed, model, ["x0", "x1"], y[:, None], inputs)


def range_only(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    where = rng.normal(0, 1.5, 2)
    beacons = rng.uniform(-4, 4, (ROWS, 2))
    y = np.linalg.norm(beacons - where, axis=1) + 0.3 * rng.standard_normal(ROWS)
    return problem("range-2", seed, RangeOnly(), y, beacons)


def banana(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 1, 2)
    fifth = np.arange(ROWS) % 5 == 4
    clean = np.where(fifth, x[1], x[0] + x[1] ** 2)
    y = clean + np.where(fifth, 2.0, 0.5) * rng.standard_normal(ROWS)
    return problem("banana-2", seed, Banana(), y, np.stack([fifth, ~fifth], 1))


def ring(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    return problem("ring-2", seed, Ring(), 2.0 + 0.3 * rng.standard_normal(ROWS))


def two_modes(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    return problem(
        "two-modes-2", seed, TwoModes(), np.where(rng.random(ROWS) < 0.5, 1.0, -1.0) + rng.standard_normal(ROWS)
    )
