"""The map as an operator of its own: scores carried along, the affine flow where the map is worse, gradients."""

import equinox as eqx
import jax
import numpy as np
import pytest
from jax import numpy as jnp

import pfbr
from pfbr.flow.transport.known import Known
from pfbr.inference.adaptive.general import shipped
from pfbr.inference.architectures import build, choose
from pfbr.models.base import StateSpaceModel, normal_log_densities
from pfbr.particles.particles import ess_share
from pfbr.training import TrainingSettings
from pfbr.training.objectives.elbo import ElboObjective
from pfbr.training.tasks import ModelFamily
from tests.flow.transport import cases

N = 256
EQUAL = jnp.full(N, 1 / N)


class Tracker(StateSpaceModel):
    """Distances to half a metre, of a place known to twenty: the first one is as sharp as they come."""

    dim: int = eqx.field(static=True, default=4)

    def sample_prior(self, key):
        return jnp.asarray([40.0, 30.0, 0.0, 0.0]) + jnp.asarray([20.0, 20.0, 2.0, 2.0]) * jax.random.normal(key, (4,))

    def log_prior(self, x):
        return jnp.sum(normal_log_densities(x, jnp.asarray([40.0, 30.0, 0, 0]), jnp.asarray([20.0, 20.0, 2, 2])))

    def _moved(self, x):
        return jnp.concatenate([x[:2] + x[2:], x[2:]])

    def sample_transition(self, key, x):
        return self._moved(x) + 0.5 * jax.random.normal(key, (4,))

    def log_transition(self, x_next, x):
        return jnp.sum(normal_log_densities(x_next, self._moved(x), 0.5))

    def log_likelihood(self, x, observation):
        return jnp.sum(normal_log_densities(observation, jnp.sqrt(jnp.sum(x[:2] ** 2) + 1e-9), 0.5))

    def sample_observation(self, key, x):
        return (jnp.sqrt(jnp.sum(x[:2] ** 2)) + 0.5 * jax.random.normal(key))[None]


@pytest.mark.parametrize("case", cases.CURVED, ids=lambda case: type(case).__name__)
def test_scores_after_a_step_are_those_of_the_posterior(case):
    """Known in closed form where the density before is: what the next observation is judged by."""
    points = case.draws(jax.random.key(1), N)
    known = Known(*jax.vmap(jax.value_and_grad(case.log_before))(points))
    told = jax.vmap(jax.value_and_grad(case.log_likelihood))
    after = shipped()(points, EQUAL, known, told, with_scores=True)
    true = jax.vmap(jax.grad(lambda x: case.log_before(x) + case.log_likelihood(x)))(after.points)
    off = np.linalg.norm(after.scores - true, axis=1) / (1 + np.linalg.norm(true, axis=1))
    assert np.mean(off < 0.05) > 0.95


def test_the_affine_flow_is_taken_where_it_is_better():
    """A likelihood that turns eight times within the cloud lies between the nodes of every grid."""
    wild = lambda x: -0.5 * jnp.sum(((x - 0.3) / 0.02) ** 2) + 4 * jnp.cos(400 * x[0])
    points = jax.random.normal(jax.random.key(1), (N, 2))
    log_before = lambda x: -0.5 * jnp.sum(x**2)
    known = Known(*jax.vmap(jax.value_and_grad(log_before))(points))
    told = jax.vmap(jax.value_and_grad(wild))
    target = lambda x: jax.vmap(lambda x: log_before(x) + wild(x))(x)
    share = lambda after: float(ess_share(target(after.points) - known.values + after.log_det))
    alone, guarded = (shipped()(points, EQUAL, known, told, with_scores=scores) for scores in (False, True))
    assert share(guarded) >= share(alone) - 0.02


def test_sharp_first_observations_keep_their_gradients():
    """Sixteen tasks of a tracker by the ELBO. A derivative may still overflow where a cloud is thrown far off: one
    is allowed."""
    model = Tracker()
    objective = ElboObjective(ModelFamily(model), TrainingSettings(num_particles=64, length=6))
    weights, rest = eqx.partition(build(jax.random.key(0), choose("general", model)), eqx.is_inexact_array)

    @jax.jit
    def one(key):
        loss, gradient = jax.value_and_grad(lambda w: objective.loss(key, eqx.combine(w, rest)))(weights)
        return loss, jnp.all(jnp.asarray([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(gradient)]))

    losses, finite = jax.lax.map(one, jax.random.split(jax.random.key(5), 16))
    assert jnp.all(jnp.isfinite(losses))
    assert jnp.sum(finite) >= 15


def test_training_goes_on_from_the_shipped_weights(tmp_path):
    """The untrained entry of the history is the shipped map's own score; what comes out is a file like any other."""
    model = pfbr.models.GaussianMean(3)
    settings = TrainingSettings(steps=2, num_particles=32, length=2, batch=2, validate_every=1, validation_tasks=2)
    operator, report = pfbr.fit(model, operator="general", settings=settings, progress=False)
    again = pfbr.fit(model, operator=operator, settings=settings, progress=False)[1]
    assert again.history[0]["score"] == pytest.approx(report.best_score, abs=1e-5)
    assert report.best_score <= report.history[0]["score"]
    pfbr.save(tmp_path / "mine.pfbr", operator)
    assert eqx.tree_equal(pfbr.load(tmp_path / "mine.pfbr"), operator)
