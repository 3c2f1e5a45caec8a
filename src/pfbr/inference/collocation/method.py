"""Bayes' rule without training for posteriors of any shape: the continuity equation, solved anew at every step."""

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array

from pfbr.errors import InputError
from pfbr.flow.likelihood import Likelihood
from pfbr.inference.collocation.fields import Fields, choose_fields
from pfbr.inference.collocation.rejuvenation import rejuvenate
from pfbr.inference.collocation.velocity import Rates, ScoredParticles, rates
from pfbr.inference.info import Info, Move
from pfbr.inference.method import Method
from pfbr.models.base import Model, StateSpaceModel
from pfbr.particles.particles import Particles, ess, normalise
from pfbr.particles.qmc import draw_prior, draw_transition
from pfbr.particles.tempering_share import tempering_share
from pfbr.typing import Key, Observation, Scalar

WORN = 0.5  # share of the particles below which the effective sample size calls for new ones
TOLERANCE = 0.3  # nats of log weight by which a step may disagree with itself
NEGLIGIBLE = 25.0  # nats below the heaviest at which a particle no longer counts, wherever it has gone
MAX_PARTS = 32  # into which an observation is cut when particles are weighed only
FAR = 7.0  # lengths of the cloud's own size
CAREFUL = 0.05  # a step this much shorter than usual is as short as is worth trying
LEAST_ESS = 0.25  # share of the particles: a single step that falls below this is not made


class CollocationState(eqx.Module):
    """The particles with their scores and weights, and their log evidence so far."""

    cloud: ScoredParticles
    log_evidence: Scalar


class _Way(eqx.Module):
    """The carry of the flow from t = 0 to 1: `care` shortens steps after one that was not good."""

    key: Key
    t: Scalar
    cloud: ScoredParticles
    log_evidence: Scalar
    care: Scalar
    steps: Array
    rejuvenations: Array
    reweighted: Array


class _Part(eqx.Module):
    """The carry of weighing a part of the observation at a time."""

    key: Key
    t: Scalar
    cloud: ScoredParticles
    log_evidence: Scalar
    index: Array


class CollocationOperator(Method):
    """Moves the particles along the velocity that solves the continuity equation on them (`collocation`), by Heun
    steps as long as the cloud's own speed allows.

    What the velocity leaves over becomes the particles' weights. Where these grow uneven, the particles are renewed
    (`renewal`); where the flow breaks down or leads very far, they are weighed instead of moved. Equations are solved
    at the particles only: an observation far out in the tail can still lead all of them astray, with even weights.
    """

    ridge: float = eqx.field(static=True, default=0.01)
    step_length: float = eqx.field(static=True, default=0.2)  # of a step, in units of the cloud's own size
    max_steps: int = eqx.field(static=True, default=96)
    qmc: bool = eqx.field(static=True, default=True)

    def __check_init__(self):
        if not self.ridge > 0:
            raise InputError(f"`ridge` must be positive; got {self.ridge}.")
        if not 0 < self.step_length <= 1:
            raise InputError(f"`step_length` is a share of the cloud's size, in (0, 1]; got {self.step_length}.")
        if self.max_steps < 1:
            raise InputError(f"`max_steps` must be at least 1; got {self.max_steps}.")

    def init(self, key: Key, model: Model, num_particles: int) -> CollocationState:
        points = draw_prior(key, model, num_particles, qmc=self.qmc)
        log_density, scores = jax.vmap(jax.value_and_grad(model.log_prior))(points)
        log_weights = jnp.full((num_particles,), -jnp.log(float(num_particles)), points.dtype)
        zero = jnp.zeros((), points.dtype)
        return CollocationState(ScoredParticles(points, log_density, scores, log_weights), zero)

    def particles(self, state: CollocationState) -> Particles:
        return Particles(state.cloud.points, state.cloud.log_weights, state.cloud.log_density)

    def predict(self, key: Key, model: Model, cloud: ScoredParticles) -> ScoredParticles:
        """The dynamics, before an observation is seen; nothing where there are none."""
        if not isinstance(model, StateSpaceModel):
            return cloud
        moved = draw_transition(key, model, cloud.points, qmc=self.qmc)

        def log_densities(x):
            """Of the law that the moved particles were drawn from, and of the one they stand for."""
            each = jax.vmap(model.log_transition, (None, 0))(x, cloud.points)
            stands_for = jax.nn.logsumexp(each + cloud.log_weights)
            return stands_for, jax.nn.logsumexp(each) - jnp.log(float(each.shape[0]))

        (target, drawn), scores = jax.lax.map(
            lambda x: (log_densities(x), jax.grad(lambda y: log_densities(y)[0])(x)), moved, batch_size=256
        )
        return ScoredParticles(moved, drawn, scores, normalise(target - drawn))

    def update(
        self, key: Key, model: Model, state: CollocationState, observation: Observation
    ) -> tuple[CollocationState, Info]:
        predict_key, move_key = jax.random.split(key)
        cloud = self.predict(predict_key, model, state.cloud)
        likelihood = Likelihood(model, observation)
        values = likelihood.values(cloud.points)
        alive = jnp.isfinite(values)
        flow_key, weigh_key = jax.random.split(move_key)
        # particles that the observation rules out have no weight left, and the evidence loses theirs
        log_weights = jnp.where(alive, cloud.log_weights, -jnp.inf)
        started = state.log_evidence + jax.nn.logsumexp(log_weights)
        cloud = eqx.tree_at(lambda c: c.log_weights, cloud, normalise(log_weights))
        moved, log_evidence, info = self._move(flow_key, cloud, likelihood, started)
        # A flow that broke down on its way, or that went very far, has come to where the particles know nothing: the
        # tail of what was believed. Equations that hold at the particles then say little about where they should be.
        far = info["num_steps"] * self.step_length > FAR
        hard = far | (info["reweighted"] > 0) | (info["rejuvenations"] > 1)
        cloud, log_evidence = jax.lax.cond(
            hard, lambda: _weighed(weigh_key, cloud, likelihood, started), lambda: (moved, log_evidence)
        )
        said = Info(
            ess=ess(cloud.log_weights),
            log_predictive=log_evidence - state.log_evidence,
            move=jnp.where(hard, int(Move.TEMPERED), int(Move.FLOW)),
            possible=jnp.mean(alive),
            undefined=jnp.mean(jnp.isnan(values)),
            details=info,
        )
        return CollocationState(cloud, log_evidence), said

    def _move(
        self, key, cloud: ScoredParticles, likelihood: Likelihood, log_evidence: Scalar
    ) -> tuple[ScoredParticles, Scalar, dict]:
        n, d = cloud.points.shape
        fields = choose_fields(d, n)

        def unfinished(way: _Way):
            return (way.t < 1) & (way.steps < self.max_steps)

        def step(way: _Way) -> _Way:
            key, renew_key = jax.random.split(way.key)
            first, speed = rates(way.cloud, likelihood, fields, self.ridge)
            shortest = (1 - way.t) / (self.max_steps - way.steps)  # the last steps must arrive
            length = jnp.clip(way.care * self.step_length / speed, shortest, 1 - way.t)
            length = jnp.where(jnp.isfinite(length), length, 1 - way.t)
            flowed, error = self._heun(way.cloud, first, length, likelihood, fields)
            good = _is_whole(flowed) & (ess(flowed.log_weights) >= LEAST_ESS * n) & (error < TOLERANCE)
            # a step that is not good is tried again, shorter; the last resort is to weigh particles instead of moving
            retry = ~good & (way.care > CAREFUL) & (length > shortest)
            weighed, weighed_length = _reweighted(way.cloud, likelihood, 1 - way.t, shortest)
            cloud = jax.tree.map(lambda a, b, c: jnp.where(good, a, jnp.where(retry, b, c)), flowed, way.cloud, weighed)
            length = jnp.where(good, length, jnp.where(retry, 0.0, weighed_length))
            t = jnp.where(1 - way.t - length < 1e-6, 1.0, way.t + length)
            cloud, gained = _normalised(cloud)
            worn = ess(cloud.log_weights) < WORN * n
            cloud = jax.lax.cond(worn, lambda c: rejuvenate(renew_key, c), lambda c: c, cloud)
            care = jnp.where(retry, way.care / 4, jnp.where(good, jnp.minimum(1.0, 2 * way.care), 1.0))
            return _Way(
                key,
                t,
                cloud,
                way.log_evidence + gained,
                care,
                way.steps + 1,
                way.rejuvenations + worn,
                way.reweighted + (~good & ~retry),
            )

        zero, dtype = jnp.zeros((), jnp.int32), cloud.points.dtype
        begun = _Way(key, jnp.zeros((), dtype), cloud, log_evidence, jnp.ones((), dtype), zero, zero, zero)
        end = jax.lax.while_loop(unfinished, step, begun)
        details = {"num_steps": end.steps, "rejuvenations": end.rejuvenations, "reweighted": end.reweighted}
        return end.cloud, end.log_evidence, details

    def _heun(self, cloud: ScoredParticles, first: Rates, length, likelihood: Likelihood, fields: Fields):
        """The cloud after one step, and by how many nats of log weight the step disagrees with itself."""
        guess, _ = _normalised(_advance(cloud, first, length))
        second, _ = rates(guess, likelihood, fields, self.ridge)
        # half the difference is what Heun's step knows better than Euler's: about the error of the latter
        wrong = 0.5 * length * (second.log_weights - first.log_weights)
        counts = jnp.exp(cloud.log_weights)
        wrong -= jnp.sum(jnp.where(counts > 0, counts * wrong, 0.0))
        error = jnp.sqrt(jnp.sum(jnp.where(counts > 0, counts * wrong**2, 0.0)))
        return _advance(cloud, jax.tree.map(lambda a, b: 0.5 * (a + b), first, second), length), error


def _normalised(cloud: ScoredParticles) -> tuple[ScoredParticles, Scalar]:
    """The cloud with weights that sum to one, and the log of what they summed to."""
    counts = cloud.log_weights > jnp.max(cloud.log_weights) - NEGLIGIBLE
    log_weights = jnp.where(counts, cloud.log_weights, -jnp.inf)
    return eqx.tree_at(lambda c: c.log_weights, cloud, normalise(log_weights)), jax.nn.logsumexp(log_weights)


def _weighed(
    key: Key, cloud: ScoredParticles, likelihood: Likelihood, log_evidence: Scalar
) -> tuple[ScoredParticles, Scalar]:
    """The same update without any motion: weigh, renew, a part of the observation at a time."""

    def part(done: _Part) -> _Part:
        key, renew_key = jax.random.split(done.key)
        left = 1 - done.t
        cloud, length = _reweighted(done.cloud, likelihood, left, left / (MAX_PARTS - done.index))
        cloud, gained = _normalised(cloud)
        t = jnp.where(left - length < 1e-6, 1.0, done.t + length)
        return _Part(key, t, rejuvenate(renew_key, cloud), done.log_evidence + gained, done.index + 1)

    begun = _Part(key, jnp.zeros((), cloud.points.dtype), cloud, log_evidence, jnp.zeros((), jnp.int32))
    end = jax.lax.while_loop(lambda done: (done.t < 1) & (done.index < MAX_PARTS), part, begun)
    return end.cloud, end.log_evidence


def _advance(cloud: ScoredParticles, rate: Rates, length: Scalar) -> ScoredParticles:
    """One Euler step. A particle that has no weight stays where it is: it has nothing to say, and no way to go."""
    idle = ~jnp.isfinite(cloud.log_weights)

    def leaf(at, slope):
        moved = at + length * slope
        return jnp.where(idle.reshape(-1, *(1,) * (at.ndim - 1)), at, moved)

    return ScoredParticles(
        leaf(cloud.points, rate.points),
        leaf(cloud.log_density, rate.log_density),
        leaf(cloud.scores, rate.scores),
        leaf(cloud.log_weights, rate.log_weights),
    )


def _is_whole(cloud: ScoredParticles) -> Array:
    """Whether every particle that counts is a number. Weights that are none at all fail the test of their ESS."""
    counts = cloud.log_weights > -jnp.inf
    finite = jnp.all(jnp.isfinite(cloud.points), axis=-1) & jnp.isfinite(cloud.log_density)
    return jnp.all(finite | ~counts) & ~jnp.any(jnp.isnan(cloud.log_weights))


def _reweighted(
    cloud: ScoredParticles, likelihood: Likelihood, left: Scalar, shortest: Scalar
) -> tuple[ScoredParticles, Scalar]:
    """The particles where they are, weighted by a part of the likelihood: as much as leaves half of them counting."""
    values, slopes = likelihood.values_and_scores(cloud.points)
    values = jnp.where(jnp.isfinite(values), values, -jnp.inf)
    n = cloud.points.shape[0]

    length = tempering_share(cloud.log_weights, values, left, WORN * n, shortest=shortest)
    # 0 · −inf is no number: a particle that is ruled out is so after any part of the observation
    log_weights = cloud.log_weights + jnp.where(jnp.isfinite(values), length * values, -jnp.inf)
    scores = cloud.scores + length * jnp.where(jnp.isfinite(slopes), slopes, 0.0)
    return ScoredParticles(cloud.points, cloud.log_density, scores, log_weights), length


def collocation_operator(*, step_length: float = 0.2, max_steps: int = 96, qmc: bool = True) -> CollocationOperator:
    """An operator that needs no training, for posteriors of any shape in few dimensions (three or so with 256
    particles): curved, thin, or with several modes. In more it becomes the Gaussian one, with weights."""
    return CollocationOperator(step_length=step_length, max_steps=max_steps, qmc=qmc)
