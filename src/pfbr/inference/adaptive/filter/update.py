"""One observation absorbed by a predicted cloud: weigh where that is enough, flow where that is all but exact, temper
the rest.

Weighing needs no density at all. A flow is weighed by target over transported density, and tempering moves particles
under a target, so both need the density before the observation: it comes from the predicted cloud alone.
"""

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array

from pfbr.inference.adaptive.filter.affine_flow import affine_flow, posterior_map, quadratic
from pfbr.inference.adaptive.filter.cloud import Cloud, resampled
from pfbr.inference.adaptive.filter.density import CloudDensity, cloud_density
from pfbr.inference.adaptive.filter.ensemble import PER_DIMENSION, ensemble_update
from pfbr.particles.particles import ess
from pfbr.particles.particles import normalise as normalised
from pfbr.particles.tempering_share import tempering_share
from pfbr.particles.whitening import whitening_of
from pfbr.typing import Real

WEIGHED, FLOWED, TEMPERED, SECOND_LOOK, OVERSAMPLED = 0, 1, 2, 3, 4


class Settings(eqx.Module):
    """Thresholds are traced, so that trying others compiles nothing anew; counts set shapes and loops."""

    stay: Real = 0.5  # ESS that weighing must leave: below, estimates lose more than moves cost
    flow: Real = 0.9  # ESS that a flow must leave: at 0.4 and 0.8 it loses to tempering
    temper: Real = 0.5  # ESS that one tempering round leaves
    ancestors: Real = 0.5  # ESS that further draws must leave among the particles they come from
    misfit: Real = 0.02  # nats by which a likelihood may miss being quadratic and still count as one
    surprise: Real = 8.0  # nats below what the cloud's own draws would score
    defensive: Real = 0.02  # mass of the wide Gaussian in the cloud's density: tails for surprises
    breadth: Real = 2.0  # its width
    slack: Real = 1.0  # standard errors by which wider kernels may be less likely than the best
    moves: int = eqx.field(static=True, default=4)  # Metropolis moves after each resampling
    rounds: int = eqx.field(static=True, default=12)  # tempering rounds at most: a bound on the time of a step
    oversample: int = eqx.field(static=True, default=16)  # draws of the dynamics from each particle; 0: never
    second_look: int = eqx.field(static=True, default=16)  # reports that can be replayed; 0: never
    second_look_particles: int = eqx.field(static=True, default=4096)
    find_exact: bool = eqx.field(static=True, default=True)  # look for Gaussian cloud and quadratic likelihood first
    match: bool = eqx.field(static=True, default=True)  # quasi-random matched normals where the model takes normals


def without_noise(settings: Settings) -> Settings:
    """Deterministic dynamics: kernels put particles where no path leads, weighing does not, so weigh further down
    (Lorenz-63, N = 100: 0.41 at a half, 0.34 to 0.35 at a fifth; at a tenth tracks are lost)."""
    return eqx.tree_at(lambda s: (s.stay, s.temper), settings, (0.4 * settings.stay, 0.4 * settings.temper))


class Absorbed(eqx.Module):
    cloud: Cloud
    log_predictive: Array
    move: Array
    rounds: Array
    acceptance: Array  # of the last moves; 1 where none was needed
    width: Array  # of the kernels; 1 where none was needed
    unfinished: Array  # the rounds were used up before all was absorbed


def absorb(
    key: Array, cloud: Cloud, log_likelihood, settings: Settings, *, linear_gaussian: bool = False, redraw=None
) -> Absorbed:
    """`log_likelihood`: points (n, d) -> (n,). `redraw(key)`: as many further draws of the same prediction as
    `settings.oversample` says, (k n, d), those of one particle together; None where the dynamics have no noise."""
    n, d = cloud.points.shape

    def value_and_score(points):
        values, pull = jax.vjp(log_likelihood, points)
        return values, pull(jnp.ones_like(values))[0]

    def by_flow(seen):
        go = posterior_map(seen)
        moved = cloud.at(go(cloud.points))
        return _absorbed(moved, seen.log_evidence, FLOWED)

    if linear_gaussian:
        return by_flow(quadratic(cloud.points, cloud.weights, value_and_score))
    if n < PER_DIMENSION * d:
        moved, log_predictive = ensemble_update(key, cloud, value_and_score, settings.misfit)
        return _absorbed(moved, log_predictive, FLOWED)

    values = log_likelihood(cloud.points)
    stay = cloud.log_weights + values

    def weigh():
        gained = jax.nn.logsumexp(stay)
        return _absorbed(cloud.at(cloud.points, stay - gained), gained, WEIGHED)

    def flow_or_temper():
        return _flow_or_temper(key, cloud, log_likelihood, value_and_score, settings)

    def work():
        if redraw is None or not settings.oversample:
            return flow_or_temper()
        draw_key, resample_key = jax.random.split(key)
        drawn = redraw(draw_key)
        weighed = (
            jnp.repeat(cloud.log_weights, settings.oversample) - jnp.log(settings.oversample) + log_likelihood(drawn)
        )
        by_ancestor = jax.nn.logsumexp(weighed.reshape(n, settings.oversample), axis=1)

        def take():
            gained = jax.nn.logsumexp(weighed)
            return _absorbed(
                resampled(resample_key, drawn, weighed, jnp.repeat(cloud.parent, settings.oversample), n),
                gained,
                OVERSAMPLED,
            )

        enough = (ess(weighed) > n) & (ess(by_ancestor) > settings.ancestors * n)
        return jax.lax.cond(enough, take, flow_or_temper)

    def weigh_or_work():
        return jax.lax.cond(ess(stay) > settings.stay * n, weigh, work)

    if not settings.find_exact:
        return weigh_or_work()
    seen = quadratic(cloud.points, cloud.weights, value_and_score)
    plain = (seen.misfit < settings.misfit) & jnp.all(jnp.isfinite(values))
    informative = seen.sharpness > 1e-3  # a flat likelihood is weighed: nothing moves
    many = cloud.ess > 0.5 * n  # few effective particles pass any test of normality
    exact = jax.lax.cond(plain & informative & many, lambda: is_gaussian(cloud), lambda: jnp.array(False))
    return jax.lax.cond(exact, lambda: by_flow(seen), weigh_or_work)


def is_gaussian(cloud: Cloud) -> Array:
    """Mardia's tests of skewness and kurtosis, at three standard errors: what no test of two moments can see the
    affine flow does not see either."""
    d = cloud.points.shape[1]
    z = whitening_of(cloud.points, cloud.weights, shrink=False).whiten(cloud.points)
    size = cloud.ess
    skewness = cloud.weights @ (z @ z.T) ** 3 @ cloud.weights * size / 6
    degrees = d * (d + 1) * (d + 2) / 6
    kurtosis = cloud.weights @ jnp.sum(z**2, axis=1) ** 2 - d * (d + 2)
    return (skewness < degrees + 3 * jnp.sqrt(2 * degrees)) & (jnp.abs(kurtosis) < 3 * jnp.sqrt(8 * d * (d + 2) / size))


def _absorbed(cloud, log_predictive, move, rounds=0, acceptance=1.0, width=1.0, unfinished=False) -> Absorbed:
    dtype = cloud.points.dtype
    return Absorbed(
        cloud,
        jnp.asarray(log_predictive, dtype),
        jnp.asarray(move, jnp.int32),
        jnp.asarray(rounds, jnp.int32),
        jnp.asarray(acceptance, dtype),
        jnp.asarray(width, dtype),
        jnp.asarray(unfinished),
    )


class _Progress(eqx.Module):
    """The carry of the tempering loop."""

    key: Array
    absorbed: Array  # the share of the log likelihood that is in
    result: Absorbed


def _flow_or_temper(key, cloud: Cloud, log_likelihood, value_and_score, settings: Settings) -> Absorbed:
    """Until all is absorbed: stay if that is enough now, flow by all that is left if that is all but exact, else take
    as much as leaves half the ESS, resample, move."""
    n = cloud.points.shape[0]
    density_key, key = jax.random.split(key)
    density = cloud_density(density_key, cloud, settings)

    def body(progress: _Progress) -> _Progress:
        key, temper_key = jax.random.split(progress.key)
        done, left, result = progress.absorbed, 1 - progress.absorbed, progress.result
        cloud = result.cloud
        values = log_likelihood(cloud.points)
        stay = cloud.log_weights + left * values
        stay_ess = ess(stay)

        def weigh():
            gained = jax.nn.logsumexp(stay)
            settled = cloud.at(cloud.points, stay - gained)
            return jnp.ones(()), _absorbed(settled, gained, result.move, 0, result.acceptance, density.width)

        def flow_or_temper():
            flow = affine_flow(
                cloud.points, cloud.weights, lambda p: jax.tree.map(lambda v: left * v, value_and_score(p))
            )
            flowed = (
                cloud.log_weights
                + (density(flow.points) + log_likelihood(flow.points))
                - (density(cloud.points) + done * values - flow.log_det)
            )
            flowed = jnp.where(jnp.isfinite(flowed), flowed, -jnp.inf)

            def take_flow():
                gained = jax.nn.logsumexp(flowed)
                moved = cloud.at(flow.points, flowed - gained)
                return jnp.ones(()), _absorbed(moved, gained, FLOWED, 0, result.acceptance, density.width)

            def temper():
                share = tempering_share(cloud.log_weights, values, left, settings.temper * n, shortest=left / 20)
                return _temper(temper_key, cloud, values, done, share, density, log_likelihood, settings)

            return jax.lax.cond(ess(flowed) > jnp.maximum(settings.flow * n, stay_ess), take_flow, temper)

        done, step = jax.lax.cond(stay_ess > settings.stay * n, weigh, flow_or_temper)
        total = result.log_predictive + step.log_predictive
        # the kind of the whole step is its least exact part
        move = jnp.maximum(result.move, step.move)
        step = Absorbed(step.cloud, total, move, result.rounds + 1, step.acceptance, step.width, done < 1)
        return _Progress(key, done, step)

    def unfinished(progress: _Progress):
        return (progress.absorbed < 1) & (progress.result.rounds < settings.rounds)

    start = _Progress(key, jnp.zeros(()), _absorbed(cloud, 0.0, WEIGHED))
    return jax.lax.while_loop(unfinished, body, start).result


class _Walker(eqx.Module):
    points: Array
    target: Array
    accepted: Array


def _temper(key, cloud: Cloud, values, done, share, density: CloudDensity, log_likelihood, settings: Settings):
    """Resample by a share of the likelihood; random-walk Metropolis at three scales in the frame of the target."""
    n, d = cloud.points.shape
    resample_key, walk_key = jax.random.split(key)
    tempered = cloud.log_weights + share * values
    gained = jax.nn.logsumexp(tempered)
    now = resampled(resample_key, cloud.points, tempered, cloud.parent)
    frame = whitening_of(cloud.points, jnp.exp(normalised(tempered)), shrink=False)

    def target(points):
        value = density(points) + (done + share) * log_likelihood(points)
        return jnp.where(jnp.isnan(value), -jnp.inf, value)

    def walk(walker: _Walker, key):
        size_key, noise_key, accept_key = jax.random.split(key, 3)
        # far, middling and near: one of them fits, whatever the shape of the target
        size = jax.random.choice(size_key, jnp.array([1.0, 0.3, 0.1]), (n, 1)) * 2 / jnp.sqrt(d)
        proposed = walker.points + size * frame.vectors(jax.random.normal(noise_key, (n, d)))
        value = target(proposed)
        accept = jnp.log(jax.random.uniform(accept_key, (n,))) < value - walker.target
        return (
            _Walker(
                jnp.where(accept[:, None], proposed, walker.points),
                jnp.where(accept, value, walker.target),
                walker.accepted + jnp.mean(accept) / settings.moves,
            ),
            None,
        )

    walker = _Walker(now.points, target(now.points), jnp.zeros(()))
    walker, _ = jax.lax.scan(walk, walker, jax.random.split(walk_key, settings.moves))
    moved = now.at(walker.points)
    return done + share, _absorbed(moved, gained, TEMPERED, 0, walker.accepted, density.width)
