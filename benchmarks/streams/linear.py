"""Linear-Gaussian tracking: correlated noise, and singular noise (two numbers drive four). Truth: Kalman, float64."""

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

from benchmarks.streams.problem import Problem, Simulated, Truth, draw
from pfbr.models.base import LinearGaussian, StateSpaceModel
from pfbr.models.base import normal_log_densities as normal

STEPS = 150
SPREAD = np.array([5.0, 5.0, 1.0, 1.0], np.float32)  # of the prior
PROCESS, NOISE, CORRELATION = 0.3, 0.5, 0.9


def dynamics(dt, singular: bool, xp=jnp):
    """x' = A x + B z, with as many z as B has columns."""
    eye, zero = xp.eye(2), xp.zeros((2, 2))
    a = xp.block([[eye, dt * eye], [zero, eye]])
    if singular:
        return a, PROCESS * xp.concatenate([0.5 * dt**1.5 * eye, xp.sqrt(dt) * eye])
    return a, PROCESS * xp.block(
        [[xp.sqrt(dt**3 / 3) * eye, zero], [xp.sqrt(0.75 * dt) * eye, xp.sqrt(0.25 * dt) * eye]]
    )


# positions are seen, with correlated errors
OBSERVING = np.eye(2, 4)
OBSERVATION_COV = NOISE**2 * np.array([[1.0, CORRELATION], [CORRELATION, 1.0]])


class TrackingByDraws(StateSpaceModel):
    """Says neither how its noise is made nor that it is linear."""

    singular: bool = eqx.field(static=True, default=False)

    @property
    def dim(self) -> int:
        return 4

    def sample_prior(self, key):
        return SPREAD * jax.random.normal(key, (4,))

    def log_prior(self, x):
        return jnp.sum(normal(x, 0.0, SPREAD))

    def sample_transition(self, key, x, *, dt):
        a, b = dynamics(dt, self.singular)
        return a @ x + b @ jax.random.normal(key, b.shape[1:])

    def log_likelihood(self, x, observation, *, observed):
        """Errors are correlated: what was not seen is integrated out, as independent with variance one and no error."""
        cov = jnp.where(observed[:, None] & observed, OBSERVATION_COV, jnp.eye(2))
        error = jnp.where(observed, observation - OBSERVING @ x, 0.0)
        constant = 0.5 * jnp.log(2 * jnp.pi) * jnp.sum(observed) + 0.5 * jnp.linalg.slogdet(cov)[1]
        return -0.5 * error @ jnp.linalg.inv(cov) @ error - constant

    def sample_observation(self, key, x):
        return OBSERVING @ x + np.linalg.cholesky(OBSERVATION_COV) @ jax.random.normal(key, (2,))


class LinearTracking(TrackingByDraws):
    """Says how its noise is made; that it is linear has to be found out."""

    def prior_from_normal(self, z):
        return SPREAD * z

    def transition_from_normal(self, x, z, *, dt):
        a, b = dynamics(dt, self.singular)
        return a @ x + b @ z[: b.shape[1]]


class DeclaredTracking(LinearTracking):
    """Says that it is linear and Gaussian."""

    def linear_gaussian(self, *, dt):
        a, b = dynamics(dt, self.singular)
        mean, cov = jnp.zeros(4), jnp.diag(SPREAD**2)
        return LinearGaussian(a, b @ b.T, jnp.asarray(OBSERVING), jnp.asarray(OBSERVATION_COV), mean, cov)


class LinearProblem(Problem):
    def simulate(self, seed: int) -> Simulated:
        rng = np.random.default_rng(seed)
        dt = (rng.exponential(1.0, STEPS) + 0.05).astype(np.float32)
        return draw(self.model, seed, dt, None, rng.random(STEPS) < 0.15)

    def truth(self, seed: int) -> Truth:
        """At once, so that nothing is kept."""
        return kalman(self.simulate(seed), self.model.singular)


def kalman(simulated: Simulated, singular: bool) -> Truth:
    mean, cov = np.zeros(4), np.diag(SPREAD.astype(float) ** 2)
    means, covs, gains = [], [], []
    for dt, y in zip(simulated.dt.astype(float), simulated.observations.astype(float), strict=True):
        a, b = dynamics(dt, singular, np)
        mean, cov, gained = a @ mean, a @ cov @ a.T + b @ b.T, 0.0
        if np.all(np.isfinite(y)):
            s = OBSERVING @ cov @ OBSERVING.T + OBSERVATION_COV
            e, gain = y - OBSERVING @ mean, cov @ OBSERVING.T @ np.linalg.inv(s)
            gained = -0.5 * e @ np.linalg.solve(s, e) - 0.5 * np.linalg.slogdet(2 * np.pi * s)[1]
            mean, cov = mean + gain @ e, cov - gain @ s @ gain.T
        means.append(mean)
        covs.append(cov)
        gains.append(gained)
    return Truth(np.array(means), np.array(covs), np.array(gains), error=0.0)


PROBLEMS = [
    LinearProblem("linear-correlated", LinearTracking()),
    LinearProblem("linear-singular", LinearTracking(singular=True)),
    LinearProblem("linear-by-draws", TrackingByDraws()),
    LinearProblem("linear-declared", DeclaredTracking()),
]
