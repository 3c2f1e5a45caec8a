"""The continuity equation solved on the particles: exact where a formula is, right where the posterior is bent."""

import equinox as eqx
import jax
import numpy as np
import pytest
from jax import numpy as jnp

import pfbr
from pfbr.flow.likelihood import Likelihood
from pfbr.inference.collocation.fields import Fields, choose_fields
from pfbr.inference.collocation.method import CollocationOperator, collocation_operator
from pfbr.inference.collocation.rejuvenation import rejuvenate
from pfbr.inference.collocation.velocity import ScoredParticles
from pfbr.inference.collocation.velocity import rates as rates_of
from pfbr.inference.method import record
from pfbr.metrics.scores import cross_entropy
from pfbr.metrics.truth import exact, kalman
from pfbr.models import GaussianMean, LinearDynamics
from pfbr.models.simulate import simulate
from pfbr.particles.particles import equally_weighted
from pfbr.particles.qmc import match_moments
from pfbr.training.families import TESTING, Banana

OPERATOR = collocation_operator()
CUBIC = Fields(2, 3, 1)
rates = eqx.filter_jit(rates_of)


def gaussian_cloud(n: int, std: float = 1.0) -> ScoredParticles:
    points = std * match_moments(jnp.asarray(np.random.default_rng(0).normal(size=(n, 2))))
    density = -0.5 * jnp.sum((points / std) ** 2, axis=-1) - jnp.log(2 * jnp.pi * std**2)
    return ScoredParticles(points, density, -points / std**2, jnp.full(n, -jnp.log(float(n))))


def test_nothing_is_left_over_where_prior_and_likelihood_are_gaussian(x64):
    """Every particle then has the same rate, E ℓ, up to the frame's ridge of 1e-6."""
    model = GaussianMean(2, observation_std=0.5)
    rate, _ = rates(gaussian_cloud(400), Likelihood(model, jnp.array([1.0, -2.0])), CUBIC, 0.01)
    np.testing.assert_allclose(rate.log_weights, rate.log_weights[0], atol=1e-3)
    assert np.ptp(rate.log_density) < 1e-3


def test_the_rates_of_density_and_score_are_those_of_one_field(x64):
    """Log density and score of nearby points, moved by the same field: the score is still the gradient of the density.

    A small shift of a particle changes its rate of log density by shift · d(score)/dt + d(shift)/dt · score."""
    cloud, likelihood = gaussian_cloud(400), Likelihood(Banana(), jnp.array([1.5]))
    shift = 1e-4 * jnp.array([0.6, -0.8])
    # the first particle's twin counts for nothing: it has no say in the field
    twin = ScoredParticles(
        jnp.concatenate([cloud.points, cloud.points[:1] + shift]),
        jnp.append(cloud.log_density, 0.0),
        jnp.concatenate([cloud.scores, -(cloud.points[:1] + shift)]),
        jnp.append(cloud.log_weights, -jnp.inf),
    )
    both, _ = rates(twin, likelihood, CUBIC, 0.01)
    moved_apart = both.points[-1] - both.points[0]
    grown = both.log_density[-1] - both.log_density[0]
    np.testing.assert_allclose(grown, shift @ both.scores[0] + moved_apart @ cloud.scores[0], rtol=2e-2)


def test_the_velocity_takes_the_weight_out_of_a_bent_likelihood(x64):
    """What is left over on the banana is a twentieth of the variance that an unmoved cloud would have, and less than
    a third of what the affine velocity leaves."""
    # as many as with the twin above: one compilation
    cloud, likelihood = gaussian_cloud(401), Likelihood(Banana(), jnp.array([1.5]))
    still = np.var(likelihood.values(cloud.points))
    left = {f: np.var(rates(cloud, likelihood, f, 0.01)[0].log_weights) for f in (CUBIC, Fields(2, 1, -1))}
    assert left[CUBIC] < 0.05 * still
    assert left[CUBIC] < left[Fields(2, 1, -1)] / 3


@pytest.mark.parametrize(
    ("dim", "n", "fields"), [(2, 256, (3, 1)), (3, 1024, (3, 1)), (2, 16, (1, -1)), (10, 256, (1, -1))]
)
def test_as_many_fields_as_the_particles_can_tell_apart(dim, n, fields):
    chosen = choose_fields(dim, n)
    assert (chosen.degree, chosen.own_degree) == fields
    assert chosen(jnp.ones(dim), jnp.ones(dim)).shape == (chosen.num // dim,)


def test_rejuvenated_particles_know_their_density():
    """Half the weight on the right: the new cloud has the weighted moments (z = 5), its scores are the gradients of
    its density, and its density has mass one: the mean of N(0, 1)/q over it, standard error 0.04."""
    cloud = gaussian_cloud(512)
    cloud = eqx.tree_at(lambda c: c.log_weights, cloud, jax.nn.log_softmax(cloud.points[:, 0]))
    new = eqx.filter_jit(rejuvenate)(jax.random.key(0), cloud)
    weights = jnp.exp(cloud.log_weights)
    mean = weights @ cloud.points
    np.testing.assert_allclose(jnp.mean(new.points, 0), mean, atol=0.15)
    spread = (weights[:, None] * (cloud.points - mean)).T @ (cloud.points - mean)
    np.testing.assert_allclose(jnp.cov(new.points.T), spread, atol=0.25)
    tilted = jax.scipy.stats.multivariate_normal.logpdf(new.points, jnp.array([1.0, 0.0]), 0.5 * jnp.eye(2))
    assert abs(float(jnp.mean(jnp.exp(tilted - new.log_density))) - 1) < 0.2
    np.testing.assert_allclose(jax.nn.logsumexp(new.log_weights), 0, atol=1e-5)


@pytest.mark.slow
def test_it_is_kalmans_update_with_dynamics():
    model = LinearDynamics.random(0, 2)
    observations = simulate(jax.random.key(1), model, 10).observations
    truth = kalman(model, observations)
    said = record(jax.random.key(2), OPERATOR, model, observations, 256)
    means = jnp.einsum("tn,tnd->td", jnp.exp(said.particles.log_weights), said.particles.points)
    spreads = jnp.sqrt(jnp.diagonal(truth.cov, axis1=1, axis2=2))
    # two standard errors of as many exact draws; spreads are 1.05 to 2.15
    np.testing.assert_allclose((means - truth.mean) / spreads, 0, atol=2 / 256**0.5)


@pytest.fixture(scope="module")
def bananas():
    """Four streams of six observations: scores above as many exact draws, and log evidence beside that of a grid."""
    model = Banana()
    axis = jnp.linspace(-6, 6, 241)
    grid = jnp.stack(jnp.meshgrid(axis, axis), -1).reshape(-1, 2)

    def one(key):
        task = TESTING["banana"].sample(key, 6)
        truth = exact(model, task.observations)
        keys = jax.random.split(key, 6)
        draws, best = (jax.vmap(lambda t, k, m=m: t.sample(k, m))(truth, keys) for m in (600, 256))
        ours = record(jax.random.fold_in(key, 2), OPERATOR, model, task.observations, 256)
        of_exact = jax.vmap(lambda b, d: cross_entropy(equally_weighted(b), d))(best, draws)
        above = jax.vmap(cross_entropy)(ours.particles, draws) - of_exact
        logs = jax.vmap(lambda o: jax.vmap(model.log_likelihood, (0, None))(grid, o))(task.observations).sum(0)
        evidence = jax.nn.logsumexp(logs + jax.vmap(model.log_prior)(grid)) + 2 * jnp.log(axis[1] - axis[0])
        return above, ours.info, evidence

    return jax.jit(lambda keys: jax.lax.map(one, keys))(jax.random.split(jax.random.key(300), 4))


def test_bent_posteriors_are_near_exact_sampling(bananas):
    """No stage of any stream more than a nat above exact draws, half of them within 0.1 (affine: +40 on average)."""
    above, info, _ = bananas
    assert np.max(above) < 1.0
    assert np.median(above) < 0.1
    assert np.all(info.ess > 0.2 * 256)
    assert np.all(info.details["num_steps"] <= 96)


def test_evidence_of_a_banana(bananas):
    """Weights are right to first order in what the velocity leaves over, and a rejuvenation is drawn at random: after
    six observations the evidence of four streams was off by 0.26 at most and by 0.08 on average."""
    _, info, truth = bananas
    gap = np.abs(np.asarray(info.log_evidence[:, -1]) - truth)
    assert gap.max() < 0.4
    assert gap.mean() < 0.2
    np.testing.assert_allclose(jnp.cumsum(info.log_predictive, axis=1), info.log_evidence, atol=1e-3)


class Half(GaussianMean):
    """An observation that says: x1 is positive, and probably near o; or, if its last entry is zero, nothing."""

    def log_likelihood(self, x, observation):
        inside = super().log_likelihood(x, observation[:2])
        return jnp.where(observation[2] == 0, 0.0, jnp.where(x[0] > 0, inside, -jnp.inf))

    def sample_observation(self, key, x):
        return jnp.append(super().sample_observation(key, x), 1.0)


def test_a_session_with_an_observation_that_rules_out_and_one_that_says_nothing():
    session = pfbr.Session(Half(2, observation_std=1.0), method=OPERATOR, num_particles=1024)
    before = session.update([5.0, 5.0, 0.0])
    assert before.particles.shape == (1024, 2)
    np.testing.assert_allclose(before.weights, 1 / 1024, rtol=1e-4)
    np.testing.assert_allclose(before.mean(), 0, atol=1e-3)  # quasi-random draws with matched moments, untouched
    assert abs(before.info.log_evidence) < 1e-4
    after = session.update([0.0, 0.0, 1.0])
    assert float(after.weights @ (after.particles[:, 0] <= 0)) < 0.02
    # half a normal of variance 1/2 has mean √(1/π)
    assert abs(after.mean()[0] - np.pi**-0.5) < 0.08
    assert abs(after.info.possible - 0.5) < 0.05


def test_settings_are_checked():
    for wrong in ({"step_length": 0.0}, {"max_steps": 0}, {"ridge": 0.0}):
        with pytest.raises(pfbr.errors.InputError, match=next(iter(wrong))):
            CollocationOperator(**wrong)
