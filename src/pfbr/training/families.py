"""Kinds of problems in the plane to learn from, and kinds kept for testing; no kind is in both.

An operator that is to serve models it has never seen is trained on `TRAINING` and judged on `TESTING`. What an
observation was made with (a direction, a beacon, the coefficients of a curve) is part of the observation.
"""

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.models.base import Model, normal_log_density
from pfbr.models.gaussian_mean import GaussianMean
from pfbr.models.gaussian_mixture import GaussianMixture
from pfbr.models.logistic_regression import LogisticRegression
from pfbr.models.simulate import simulate
from pfbr.particles.mixtures import MixtureOfGaussians
from pfbr.training.priors import DirichletProcess
from pfbr.training.tasks import Family, ModelFamily, Task
from pfbr.typing import Key, Observation, Point, Real, Scalar


class PlanarModel(Model):
    """x ~ N(0, I) in the plane; a subclass says how it is observed."""

    dim: int = eqx.field(static=True, default=2, init=False)

    def sample_prior(self, key: Key) -> Point:
        return jax.random.normal(key, (2,))

    def prior_from_normal(self, z: Point) -> Point:
        return z

    def log_prior(self, x: Point) -> Scalar:
        return normal_log_density(x, 0.0, 1.0)


class RangeOnly(PlanarModel):
    """Distance to a beacon, o = ‖x − c‖ + noise_std ε; an observation is [o, c], c ~ N(0, spread² I)."""

    noise_std: Real = 0.3
    spread: Real = 2.0

    def log_likelihood(self, x: Point, observation: Observation) -> Scalar:
        distance = jnp.sqrt(jnp.sum((x - observation[1:]) ** 2) + 1e-12)
        return normal_log_density(observation[:1], distance, self.noise_std)

    def sample_observation(self, key: Key, x: Point) -> Observation:
        beacon_key, noise_key = jax.random.split(key)
        beacon = self.spread * jax.random.normal(beacon_key, (2,))
        distance = jnp.linalg.norm(x - beacon) + self.noise_std * jax.random.normal(noise_key)
        return jnp.concatenate([distance[None], beacon])


class Banana(PlanarModel):
    """o = x1 + x2² + noise_std ε: the posterior is a thin parabola that never becomes a point."""

    noise_std: Real = 0.7

    def log_likelihood(self, x: Point, observation: Observation) -> Scalar:
        return normal_log_density(observation, x[0] + x[1] ** 2, self.noise_std)

    def sample_observation(self, key: Key, x: Point) -> Observation:
        return (x[0] + x[1] ** 2)[None] + self.noise_std * jax.random.normal(key, (1,))


class PoissonRegression(PlanarModel):
    """Counts with rate exp(a · x); an observation is [count, a], a ~ N(0, I/2)."""

    def log_likelihood(self, x: Point, observation: Observation) -> Scalar:
        log_rate = observation[1:] @ x
        return observation[0] * log_rate - jnp.exp(log_rate) - jax.scipy.special.gammaln(observation[0] + 1)

    def sample_observation(self, key: Key, x: Point) -> Observation:
        direction_key, count_key = jax.random.split(key)
        direction = jnp.sqrt(0.5) * jax.random.normal(direction_key, (2,))
        count = jax.random.poisson(count_key, jnp.exp(direction @ x))
        return jnp.concatenate([count[None].astype(float), direction])


class WaveModel(Model):
    """An unknown seen through a random smooth curve, with noise of a random kind; the prior is a random mixture.

    The curve is b · x + Σ_k a_k sin(ω_k · x + φ_k). `shared` keeps one curve for all observations of a task, so that
    the posterior is a curve too; otherwise every observation has its own. The noise is Student's t, from heavy
    (2 degrees of freedom) to nearly normal, or the observation is binary with the curve as its logit.
    """

    prior: MixtureOfGaussians
    shared: Float[Array, " w"]  # the task's own curve
    use_shared: Float[Array, ""]  # 0 or 1
    noise_std: Float[Array, ""]
    freedom: Float[Array, ""]
    binary: Float[Array, ""]  # 0 or 1
    num_waves: int = eqx.field(static=True, default=3)
    dim: int = eqx.field(static=True, default=2)

    def sample_prior(self, key: Key) -> Point:
        return self.prior.sample(key)

    def log_prior(self, x: Point) -> Scalar:
        return self.prior.log_density(x)

    def curve(self, parameters: Array, x: Point) -> Scalar:
        d, k = self.dim, self.num_waves
        linear, amplitudes, phases, waves = jnp.split(parameters, [d, d + k, d + 2 * k])
        return linear @ x + amplitudes @ jnp.sin(waves.reshape(k, d) @ x + phases)

    def log_likelihood(self, x: Point, observation: Observation) -> Scalar:
        value, parameters = observation[0], observation[1:]
        centre = self.curve(parameters, x)
        t = student_log_density((value - centre) / self.noise_std, self.freedom) - jnp.log(self.noise_std)
        logit = centre / self.noise_std
        return jnp.where(self.binary > 0, value * logit - jax.nn.softplus(logit), t)

    def sample_observation(self, key: Key, x: Point) -> Observation:
        curve_key, noise_key, label_key = jax.random.split(key, 3)
        own = random_curve(curve_key, self.dim, self.num_waves)
        parameters = jnp.where(self.use_shared > 0, self.shared, own)
        centre = self.curve(parameters, x)
        value = centre + self.noise_std * jax.random.t(noise_key, self.freedom)
        label = jax.random.bernoulli(label_key, jax.nn.sigmoid(centre / self.noise_std)).astype(value.dtype)
        return jnp.concatenate([jnp.where(self.binary > 0, label, value)[None], parameters])


def student_log_density(z: Scalar, freedom: Scalar) -> Scalar:
    """Student's t; its constant stands apart from z, so that it is computed once for many z."""
    constant = jax.scipy.special.gammaln(0.5 * (freedom + 1)) - jax.scipy.special.gammaln(0.5 * freedom)
    return constant - 0.5 * jnp.log(freedom * jnp.pi) - 0.5 * (freedom + 1) * jnp.log1p(z**2 / freedom)


def random_curve(key: Key, dim: int, num_waves: int) -> Array:
    linear_key, amplitude_key, phase_key, wave_key, bend_key = jax.random.split(key, 5)
    bend = jax.random.uniform(bend_key, (), minval=0.0, maxval=1.5)  # from straight lines to strong waves
    linear = jax.random.normal(linear_key, (dim,))
    amplitudes = bend * jax.random.normal(amplitude_key, (num_waves,))
    phases = jax.random.uniform(phase_key, (num_waves,), maxval=2 * jnp.pi)
    waves = jax.random.normal(wave_key, (num_waves * dim,))
    return jnp.concatenate([linear, amplitudes, phases, waves])


class Waves(Family):
    """Tasks with a prior from a Dirichlet process and a `WaveModel` likelihood: what a general operator learns from."""

    dim: int = eqx.field(static=True, default=2)
    num_waves: int = eqx.field(static=True, default=3)

    def sample(self, key: Key, length: int) -> Task:
        keys = jax.random.split(key, 8)
        gaussian_share = jax.random.bernoulli(keys[6], 0.5)  # half the priors are the one everybody starts with
        process = DirichletProcess(self.dim, concentration=1.0, components=4, spread=1.0, width=0.6)
        lumps = process.sample(keys[0])
        eye = jnp.broadcast_to(jnp.eye(self.dim), lumps.scales.shape)
        prior = MixtureOfGaussians(
            lumps.log_weights,
            jnp.where(gaussian_share, 0.0, lumps.means),
            jnp.where(gaussian_share, eye, lumps.scales),
        )
        model = WaveModel(
            prior=prior,
            shared=random_curve(keys[1], self.dim, self.num_waves),
            use_shared=jax.random.bernoulli(keys[2], 0.5).astype(float),
            noise_std=jnp.exp(jax.random.uniform(keys[3], (), minval=jnp.log(0.25), maxval=jnp.log(2.0))),
            freedom=jnp.exp(jax.random.uniform(keys[4], (), minval=jnp.log(2.0), maxval=jnp.log(30.0))),
            binary=jax.random.bernoulli(keys[5], 0.15).astype(float),
            num_waves=self.num_waves,
            dim=self.dim,
        )
        drawn = simulate(keys[7], model, length)
        return Task(model, drawn.observations, drawn.truths)


TRAINING: dict[str, Family] = {"waves": Waves()}

TESTING: dict[str, Family] = {
    "logistic": ModelFamily(LogisticRegression(2)),
    "poisson": ModelFamily(PoissonRegression()),
    "gaussian-sharp": ModelFamily(GaussianMean(2, observation_std=0.3)),
    "gaussian-vague": ModelFamily(GaussianMean(2, observation_std=10.0)),
    "mixture": ModelFamily(GaussianMixture(), at=jnp.array([1.0, -2.0])),
    "range-only": ModelFamily(RangeOnly()),
    "banana": ModelFamily(Banana()),
}
