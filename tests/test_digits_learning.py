"""Tasks that rotate, operators that learn what tasks have in common, and scores of what is foretold."""

import dataclasses

import equinox as eqx
import jax
import numpy as np
import pytest
from jax import numpy as jnp

import pfbr
from pfbr.baselines import OnePassSMC
from pfbr.baselines.one_by_one import OneByOne
from pfbr.errors import InputError
from pfbr.flow.likelihood import Likelihood
from pfbr.flow.solve import FlowSettings, flow
from pfbr.flow.velocities.affine import AffineVelocity
from pfbr.flow.velocities.informed import FIRST_WIDTH, GAIN, InformedVelocity
from pfbr.inference.method import record
from pfbr.inference.operator import Operator, gaussian_operator
from pfbr.metrics.prequential import log_predictive, prequential
from pfbr.models import GaussianMean, LogisticRegression, MiniBatch
from pfbr.paper.digit_tasks import unseen_angles, unseen_streams
from pfbr.paper.digits.rotations import RotatedDigits, for_validation, rotate
from pfbr.particles.particles import Particles, equally_weighted
from pfbr.particles.qmc import draw_prior
from pfbr.training import TrainingSettings, fit
from pfbr.training.objectives.final_error import FinalErrorObjective, transport
from pfbr.training.objectives.prequential import PrequentialObjective

KEY = jax.random.key(0)


@pytest.fixture(scope="module")
def store() -> RotatedDigits:
    """Forty 'images' of three features; the first says, but not surely, whether it is an eight."""
    features = jax.random.normal(KEY, (40, 3))
    labels = jax.random.bernoulli(jax.random.key(1), jax.nn.sigmoid(3 * features[:, 0]))
    return RotatedDigits(features, labels.astype(float), batch=4)


def _weights(v: InformedVelocity):
    return v.centre, v.centre_from_batch, v.root, v.log_power, v.power_from_batch


@pytest.fixture(scope="module")
def velocity() -> InformedVelocity:
    """One whose every weight is set, as after training."""
    fresh = InformedVelocity(KEY, 3, (4, 4), width=8)
    keys = iter(jax.random.split(jax.random.key(1), 10))
    return eqx.tree_at(
        _weights,
        fresh,
        (
            jnp.array([0.3, -0.1, 0.2]),
            0.1 * jax.random.normal(next(keys), (8, 3)),
            0.1 * jax.random.normal(next(keys), (3, 3)),
            jnp.array(-0.2),
            0.1 * jax.random.normal(next(keys), (8,)),
        ),
    )


def test_a_rotation_turns_the_first_two_features():
    features = jnp.array([[1.0, 0.0, 5.0], [0.0, 2.0, -1.0]])
    assert np.allclose(rotate(features, 90.0), [[0, 1, 5], [-2, 0, -1]], atol=1e-6)
    assert np.allclose(rotate(rotate(features, 10.0), -10.0), features, atol=1e-6)


def test_a_task_is_one_angle_the_images_of_the_store_and_an_intercept(store):
    observations = store.sample(KEY, 6).observations
    assert observations.shape == (6, 4, 5)
    assert np.all(observations[..., 3] == 1)
    # turned back by the same angle for all, every row is an image of the store with its own label
    length = jnp.linalg.norm(observations[..., :2], axis=-1)
    near = jnp.abs(jnp.linalg.norm(store.features[:, :2], axis=-1) - length[..., None]).argmin(-1)
    assert np.allclose(store.features[near][..., 2], observations[..., 2], atol=1e-5)
    assert np.array_equal(store.labels[near], observations[..., 4])
    first = store.features[near]
    turned = jnp.angle((observations[..., 0] + 1j * observations[..., 1]) / (first[..., 0] + 1j * first[..., 1]))
    assert np.ptp(turned) < 1e-4
    assert abs(float(jnp.rad2deg(turned[0, 0]))) <= 15.0
    zeroed = dataclasses.replace(store, zeroed=True).sample(KEY, 6).observations
    assert np.all(zeroed[..., :2] == 0)
    assert np.array_equal(zeroed[..., 2:], observations[..., 2:])
    upright = dataclasses.replace(store, largest_angle=0.0).sample(KEY, 6).observations
    assert np.allclose(upright[..., 0], store.features[near][..., 0], atol=1e-5)


def test_test_tasks_have_their_own_angles_and_no_image_twice():
    assert np.allclose(unseen_angles(10), np.arange(-13.5, 14, 3))
    streams, fresh = unseen_streams(0, 2, 3)
    assert streams.shape == (2, 3, 32, 52)
    assert fresh.shape == (2, 1932, 52)
    assert len(np.unique(np.asarray(streams[0]).reshape(96, 52), axis=0)) == 96
    again, _ = unseen_streams(0, 2, 3)
    assert np.array_equal(again, streams)
    other, _ = unseen_streams(1, 2, 3)
    assert not np.array_equal(other, streams)
    with pytest.raises(InputError, match="1932"):
        unseen_streams(0, 1, 61)
    assert for_validation(30).sum() == 3


def test_what_is_foretold_is_the_mean_over_particles():
    particles = Particles(jnp.array([[0.0, 1.0], [2.0, -1.0]]), jnp.log(jnp.array([0.25, 0.75])))
    batch = jnp.array([[1.0, 1.0, 1.0], [0.5, 0.0, 0.0]])
    sigmoid = lambda z: 1 / (1 + np.exp(-z))  # noqa: E731
    expected = [0.25 * sigmoid(1.0) + 0.75 * sigmoid(1.0), 0.25 * sigmoid(0.0) + 0.75 * sigmoid(-1.0)]
    model = MiniBatch(LogisticRegression(2), 2)
    assert np.allclose(log_predictive(particles, model, batch), np.log(expected), atol=1e-6)
    assert np.allclose(log_predictive(particles, model.model, batch[1]), np.log(expected[1:]), atol=1e-6)


def test_foretelling_looks_before_it_updates(store):
    observations = store.sample(KEY, 3).observations
    method = OnePassSMC()
    foretold = prequential(KEY, method, store.model, observations, 16)
    start = method.init(jax.random.split(KEY)[0], store.model, 16)
    said = record(KEY, method, store.model, observations, 16).particles
    assert np.allclose(foretold[0], log_predictive(start, store.model, observations[0]), atol=1e-5)
    after = jax.tree.map(lambda leaf: leaf[1], said)
    assert np.allclose(foretold[2], log_predictive(after, store.model, observations[2]), atol=1e-5)


def test_the_divergence_of_the_informed_velocity_is_the_trace_of_its_jacobian(velocity):
    likelihood = Likelihood(MiniBatch(LogisticRegression(3), 4), jax.random.normal(KEY, (4, 4)).at[:, 3].set(1.0))
    support = jax.random.normal(KEY, (30, 3)) @ jnp.diag(jnp.array([1.0, 2.0, 0.5]))

    @jax.jit
    def compared(points):
        context = velocity.prepare(KEY, support, likelihood)

        def field(x):
            return velocity(jnp.array(0.3), x[None], support, context, likelihood)[0][0]

        _, divergence = velocity(jnp.array(0.3), points, support, context, likelihood)
        return context.informed.precision, divergence, jax.vmap(lambda x: jnp.trace(jax.jacfwd(field)(x)))(points)

    precision, divergence, traces = compared(support[:5] + 0.1)
    assert float(jnp.trace(precision)) > 1  # the factor is at work
    assert np.allclose(divergence, traces, rtol=1e-4)


@pytest.mark.slow
def test_a_flat_batch_leaves_the_product_of_prior_and_factor(velocity):
    """Features of zero say nothing: N(0, I) times the factor is Gaussian, with mean and covariance in closed form."""
    model = MiniBatch(LogisticRegression(3), 4)
    flat = Likelihood(model, jnp.zeros((4, 4)))
    operator = Operator(velocity, FlowSettings(steps=24))
    points = draw_prior(KEY, model, 256)
    informed = velocity.factor(points, flat)
    moved = operator.move(KEY, equally_weighted(points, jax.vmap(model.log_prior)(points)), flat)
    covariance = np.linalg.inv(np.eye(3) + informed.precision)
    assert np.allclose(moved.points.mean(0), covariance @ informed.precision @ informed.centre, atol=2e-3)
    assert np.allclose(np.cov(moved.points.T, bias=True), covariance, atol=2e-3)
    change = moved.log_density - jax.vmap(model.log_prior)(points)  # an affine map: the same for every particle
    assert np.allclose(change, -0.5 * np.linalg.slogdet(covariance)[1], atol=2e-3)


def test_what_the_particles_know_is_not_counted_again(velocity):
    """A set as narrow as the factor is moved by the likelihood alone, with the learned power."""
    model = MiniBatch(LogisticRegression(3), 4)
    batch = jax.random.normal(KEY, (4, 4)).at[:, 3].set(1.0)
    likelihood = Likelihood(model, batch)
    narrow = 0.02 * draw_prior(KEY, model, 64)
    informed = eqx.filter_jit(velocity.factor)(narrow, likelihood)
    assert np.all(informed.precision == 0)
    untouched = eqx.tree_at(lambda v: _weights(v)[3:], velocity, (jnp.zeros(()), jnp.zeros(8)))
    settings, start = FlowSettings(), jnp.zeros(64)

    @eqx.filter_jit
    def moved(v):
        return flow(settings, v, v.open(KEY, narrow, likelihood), likelihood, narrow, start)

    ways = [moved(v) for v in (untouched, AffineVelocity())]
    assert np.allclose(ways[0].points, ways[1].points, atol=1e-6)


def test_an_untrained_factor_pulls_towards_zero():
    fresh = InformedVelocity(KEY, 3, (4, 4))
    points = draw_prior(KEY, LogisticRegression(3), 64)
    informed = fresh.factor(points, Likelihood(MiniBatch(LogisticRegression(3), 4), jnp.zeros((4, 4))))
    assert np.allclose(informed.centre, 0)
    share = 1 - FIRST_WIDTH**2  # 1 − 1/ρ for a set of unit covariance
    assert np.allclose(informed.precision, share * np.eye(3) / FIRST_WIDTH**2, rtol=1e-3)
    assert float(informed.power) == 1.0
    assert GAIN > 0
    with pytest.raises(InputError, match="MiniBatch"):
        InformedVelocity(KEY, 3, (4,))


def test_the_loss_of_a_stream_is_what_was_foretold_badly(store):
    settings = TrainingSettings(objective="predictive", num_particles=16, length=3)
    operator = OnePassSMC()  # anything that updates will do
    loss = eqx.filter_jit(lambda draw: draw.loss(KEY, operator))(PrequentialObjective(store, settings))
    draw_key, _, init_key, steps_key = jax.random.split(KEY, 4)
    task = store.sample(draw_key, 4)
    state, losses, update = operator.init(init_key, task.model, 16), [], eqx.filter_jit(operator.update)
    for key, batch in zip(jax.random.split(steps_key, 4), task.observations, strict=True):
        losses.append(-jnp.mean(log_predictive(operator.particles(state), task.model, batch)))
        state, _ = update(key, task.model, state, batch)
    assert np.isclose(loss, np.mean(losses[1:]), rtol=1e-5)


@pytest.mark.slow
def test_training_by_foretelling_learns_what_the_tasks_share(store, tmp_path):
    """All tasks have the same labels up to 15°: after 60 steps the first update is already better than Bayes' rule
    without that knowledge; the operator survives its file."""
    settings = TrainingSettings(
        steps=60,
        objective="predictive",
        num_particles=24,
        length=2,
        segments=2,
        learning_rate=0.02,
        validate_every=30,
        validation_tasks=8,
    )
    operator, history = fit(KEY, store.model, operator="informed", settings=settings, family=store, progress=False)
    assert history[-1]["score"] < 0.9 * history[0]["score"]
    pfbr.save(tmp_path / "o.pfbr", operator)
    again = pfbr.load(tmp_path / "o.pfbr")
    observations = store.sample(jax.random.key(5), 3).observations
    one, two = (prequential(KEY, o, store.model, observations, 24) for o in (operator, again))
    assert np.array_equal(one, two)
    assert pfbr.read_header(tmp_path / "o.pfbr")["objective"] == "predictive"
    plain = prequential(KEY, gaussian_operator(), store.model, observations, 24)
    assert one[1].mean() > plain[1].mean()


def test_foretelling_refuses_what_it_cannot_do():
    with pytest.raises(InputError, match="predictive"):
        TrainingSettings(objective="accuracy")
    model = MiniBatch(LogisticRegression(2), 2)
    settings = TrainingSettings(steps=1, objective="predictive", priors="generative")
    with pytest.raises(InputError, match="own prior"):
        fit(KEY, model, operator="informed", settings=settings, progress=False)


def test_the_final_error_is_the_elbo_of_the_last_stage(store):
    settings = TrainingSettings(num_particles=16, length=2)
    operator = gaussian_operator(qmc=False)
    loss = eqx.filter_jit(lambda draw: draw.loss(KEY, operator))(FinalErrorObjective(store, settings, 40))
    draw_key, run_key = jax.random.split(KEY)
    task = store.sample(draw_key, 4)
    last = eqx.filter_jit(transport)(run_key, operator, task.model, task.observations[:2], 16)
    each = jax.vmap(jax.vmap(task.model.log_likelihood, (None, 0)), (0, None))(last.points, task.observations[2:])
    log_joint = 40 / 8 * each.sum(axis=1) + jax.vmap(task.model.log_prior)(last.points)  # 8 images stand for 40
    assert np.isclose(loss, jnp.mean(last.log_density - log_joint) / 40, rtol=1e-4)


def test_one_by_one_is_the_method_on_the_members_in_turn():
    """A method that only weighs has no use for the order: the weights are the likelihoods of all members."""
    single, batched = GaussianMean(2), MiniBatch(GaussianMean(2), 3)
    method = OneByOne(OnePassSMC(threshold=0.0))
    observations = jax.random.normal(KEY, (1, 3, 2))
    said = record(KEY, method, batched, observations, 8).particles
    points = method.init(jax.random.split(KEY)[0], batched, 8).points
    assert np.array_equal(said.points[0], points)
    each = jax.vmap(batched.log_likelihood, (0, None))(points, observations[0])
    assert np.allclose(said.log_weights[0], jax.nn.log_softmax(each), atol=1e-4)
    assert "no batches" in method.unsupported(single)
    assert method.unsupported(batched) is None
