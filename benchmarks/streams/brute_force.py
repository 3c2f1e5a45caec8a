"""Truth by many particles: a bootstrap filter, or, where that collapses, one whose starts were looked for first."""

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

from benchmarks.streams.problem import Simulated, Truth
from pfbr.baselines import BootstrapSMC
from pfbr.inference.method import Given, Method, Stream, advance, start, step_key
from pfbr.models.base import StateSpaceModel
from pfbr.models.conditions import Conditions, bind
from pfbr.particles.particles import Particles, ess, weighted_cov, weighted_mean
from pfbr.particles.resampling import systematic

PARTICLES = 200_000  # of the bootstrap filter
# where starts are looked for: the first reports, after which most that matter is known of them; draws of the prior;
# starts they leave, and how wide the kernels around them are, in standard deviations; particles from then on
YOUNG, STARTS, CENTRES, BANDWIDTH, KEPT = 6, 1_000_000, 2000, 0.3, 200_000


@eqx.filter_jit
def moments(key, method: Method, model: StateSpaceModel, stream: Stream, num_particles: int):
    """What `record` gives, reduced to moments step by step: 200,000 particles of 150 steps need not be kept."""

    def one(state, row):
        given = Given(row.dt, row.inputs, row.observed)
        key_here = step_key(key, state.stage + 1)
        state, info = advance(key_here, method, model, state, row.observations, given)
        particles = method.particles(state.own)
        return state, (weighted_mean(particles), weighted_cov(particles), info.log_predictive)

    first = jax.tree.map(lambda leaf: leaf[0], stream)
    example = Conditions(first.dt, None, first.inputs, first.observed)
    begun = start(key, method, model, num_particles, example, stream.observations.shape[1:])
    return jax.lax.scan(one, begun, stream)[1]


def by_bootstrap(model: StateSpaceModel, simulated: Simulated, seed: int) -> Truth:
    found = moments(jax.random.key(seed + 777), BootstrapSMC(), model, simulated.stream, PARTICLES)
    return Truth(*(np.asarray(part) for part in found))


def distances(means: np.ndarray, truth: Truth) -> np.ndarray:
    """Mahalanobis distance of each step's mean from the true one, over √d."""
    away = np.asarray(means, float) - truth.means
    inverse = np.linalg.pinv(truth.covariances.astype(float), hermitian=True)
    return np.sqrt(np.maximum(np.einsum("ti,tij,tj->t", away, inverse, away), 0) / away.shape[1])


def by_informed_starts(model: StateSpaceModel, simulated: Simulated, seed: int) -> Truth:
    """Where little noise makes a bootstrap filter collapse: two independent runs, averaged; half their distance is the
    error. In each a first filter of a million particles, with the first reports only, says which starts of the prior
    they speak for; a second one draws its starts around those (a fifth of them from the prior), weighed by prior over
    proposal, which is exact whatever the first one found."""
    runs = [_informed(jax.random.key(seed + 99 * k), model, simulated.stream) for k in (1, 2)]
    means, covariances, gained = (np.array(parts, float) for parts in zip(*runs, strict=True))
    truth = Truth(means.mean(0), covariances.mean(0), gained.mean(0))
    own = float(np.sqrt(np.mean(distances(means[0], truth) ** 2)))
    return Truth(truth.means, truth.covariances, truth.log_predictives, error=own)


@eqx.filter_jit
def _informed(key, model: StateSpaceModel, stream: Stream):
    first_key, choose_key, kernel_key, prior_key, key = jax.random.split(key, 5)
    young = jax.tree.map(lambda leaf: leaf[:YOUNG], stream)

    def one(carry, row):
        points, log_weights, start, stage = carry
        here = bind(model, Conditions(row.dt, None, row.inputs, row.observed), shape=row.observations.shape)
        move_key, resample_key = jax.random.split(jax.random.fold_in(key, stage))
        points = jax.vmap(here.sample_transition)(jax.random.split(move_key, points.shape[0]), points)
        values = jax.vmap(lambda x: here.log_likelihood(x, row.observations))(points)
        log_weights = log_weights + jnp.where(jnp.any(row.observed), values, 0.0)
        gained = jax.nn.logsumexp(log_weights)
        particles = Particles(points, log_weights - gained)
        told = weighted_mean(particles), weighted_cov(particles), gained
        n = points.shape[0]
        chosen = jax.lax.cond(
            ess(log_weights) < 0.5 * n,
            lambda: (systematic(resample_key, particles.log_weights, n), jnp.full(n, -jnp.log(n))),
            lambda: (jnp.arange(n), particles.log_weights),
        )
        return (points[chosen[0]], chosen[1], start[chosen[0]], stage + 1), told

    many = jax.vmap(model.sample_prior)(jax.random.split(first_key, STARTS))
    (_, log_weights, starts, _), _ = jax.lax.scan(one, (many, jnp.full(STARTS, -jnp.log(STARTS)), many, 0), young)
    centres = starts[systematic(choose_key, log_weights, CENTRES)]
    spread = BANDWIDTH * jnp.std(centres, axis=0) + 1e-3 * jnp.std(many, axis=0)

    told = KEPT * 4 // 5
    near = jnp.repeat(centres, told // CENTRES, axis=0)
    near = near + spread * jax.random.normal(kernel_key, near.shape)
    drawn = jnp.concatenate([near, jax.vmap(model.sample_prior)(jax.random.split(prior_key, KEPT - near.shape[0]))])
    share = near.shape[0] / KEPT

    def log_proposal(x):
        kernels = -0.5 * jnp.sum(((x - centres) / spread) ** 2, axis=1) - jnp.sum(jnp.log(spread))
        kernels = kernels - 0.5 * x.shape[0] * jnp.log(2 * jnp.pi)
        near_by = jax.nn.logsumexp(kernels) - jnp.log(CENTRES)
        return jnp.logaddexp(jnp.log(share) + near_by, jnp.log(1 - share) + model.log_prior(x))

    log_weights = jax.lax.map(lambda x: model.log_prior(x) - log_proposal(x), drawn, batch_size=1000)
    log_weights = log_weights - jnp.log(KEPT)  # not normalised: the evidence is that of the prior
    return jax.lax.scan(one, (drawn, log_weights, drawn, STARTS), stream)[1]
