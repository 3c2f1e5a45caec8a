"""Flow by what is left of a likelihood if that is all but exact, else let it in by shares: resample, move, look again.

A flow is weighed by target over transported density, and Metropolis moves need a target, so both need the density
before the observation: it comes from the predicted cloud alone (density.py), and so do its limits.
"""

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array

from pfbr.flow.transport.known import Known
from pfbr.flow.transport.transport import Transport
from pfbr.inference.adaptive.filter.absorbed import FLOWED, OVERSAMPLED, TEMPERED, WEIGHED, Absorbed, absorbed
from pfbr.inference.adaptive.filter.affine_flow import affine_flow
from pfbr.inference.adaptive.filter.cloud import Cloud, resampled
from pfbr.inference.adaptive.filter.evened import evened
from pfbr.inference.adaptive.filter.settings import Settings
from pfbr.inference.adaptive.filter.transitions import Before, PredictiveDensity, predictive_density
from pfbr.particles.particles import ess
from pfbr.particles.particles import normalise as normalised
from pfbr.particles.resampling import systematic
from pfbr.particles.tempering_share import tempering_share
from pfbr.particles.whitening import whitening_of

LEFT_OUT, FAR = 0.02, 3.0  # share of the weighed cloud that a map may leave so many standard deviations behind
SEEN = 8.0  # effective particles of the weighed cloud: with fewer nobody can tell what a map leaves behind
LEFT_BEHIND = 0.1  # nats of evidence that a flow may lose, and two standard errors
NARROWER = 0.7  # width of other kernels that could as well have been chosen


class _Flowed(eqx.Module):
    points: Array
    log_weights: Array  # unnormalised
    even: Array  # of the factors by which it changes weights, at most 1
    fits: Array  # bool: all but exact, and nothing left behind
    learned: Array  # bool: by the learned map


class _Progress(eqx.Module):
    """The carry of the tempering loop."""

    key: Array
    done: Array  # the share of the log likelihood that is in
    result: Absorbed


def flow_or_temper(
    key,
    cloud: Cloud,
    log_likelihood,
    value_and_score,
    settings: Settings,
    *,
    before: Before | None,
    noisy: bool,
    transport=None,
    paths=None,
    instead=None,
) -> Absorbed:
    """All of the likelihood absorbed by a cloud of at most `settings.tempered` particles, so that the time of a step is
    bounded; the others become copies, which the next noise of the dynamics parts (without noise nothing would).

    `transport`: the learned map, where the affine flow is not all but exact. `instead()`: whether another way does it,
    and what that leaves; asked where neither is. `paths`: as they are for particles that have left them."""
    n, most = cloud.points.shape[0], settings.tempered
    density_key, some_key, key = jax.random.split(key, 3)
    # half of the chances by what an observation says: a rare mode that it speaks for must not go unseen
    told = normalised(cloud.log_weights + log_likelihood(cloud.points))
    log_chances = jnp.logaddexp(cloud.log_weights, jnp.where(jnp.isfinite(told), told, -jnp.inf)) - jnp.log(2.0)
    density = predictive_density(density_key, cloud, before, settings, log_chances)
    if n <= most or not noisy:
        return _absorb_in_rounds(
            key, cloud, density, log_likelihood, value_and_score, settings, transport, paths, instead
        )
    chosen = systematic(some_key, log_chances, most)
    log_weights = normalised(cloud.log_weights[chosen] - log_chances[chosen])
    some = Cloud(cloud.points[chosen], log_weights, cloud.family[chosen], cloud.parent[chosen])
    result = _absorb_in_rounds(
        key, some, density, log_likelihood, value_and_score, settings, transport, paths, copies=True
    )
    copies = systematic(some_key, result.cloud.log_weights, n)
    few = result.cloud
    many = Cloud(few.points[copies], jnp.full(n, -jnp.log(n), few.points.dtype), copies, few.parent[copies])
    return eqx.tree_at(lambda r: r.cloud, result, many)


def _absorb_in_rounds(
    key,
    cloud: Cloud,
    density: PredictiveDensity,
    log_likelihood,
    value_and_score,
    settings: Settings,
    transport: Transport | None,
    paths,
    instead=None,
    copies=False,
) -> Absorbed:
    """Until all is absorbed: stay if that is enough now, flow by all that is left if that is all but exact, else take
    as much as leaves half the ESS, resample, move. Where there are copies in the cloud, they are moved in any case: an
    ESS counts them as if they were apart."""
    n, d = cloud.points.shape

    def body(progress: _Progress) -> _Progress:
        key, temper_key = jax.random.split(progress.key)
        done, left, result = progress.done, 1 - progress.done, progress.result
        cloud = result.cloud
        values = log_likelihood(cloud.points)
        stay = cloud.log_weights + left * values
        stay_ess = ess(stay)
        apart = (result.rounds > 0) | (not copies)

        def weigh():
            gained = jax.nn.logsumexp(stay)
            settled = cloud.at(cloud.points, stay - gained)
            width = density.kernels.width
            return jnp.ones(()), absorbed(settled, gained, result.move, 0, result.acceptance, width, paths=paths)

        def flow_or_temper():
            before, pull = jax.vjp(density, cloud.points)
            rest = lambda p: jax.tree.map(lambda v: left * v, value_and_score(p))
            # weights are equal too where all particles have left a mode behind: those that stayed still see it, and
            # their evidence is right on average
            least = jax.nn.logsumexp(stay) - LEFT_BEHIND - 2 / jnp.sqrt(stay_ess)

            def tried(points, log_det, learned) -> _Flowed:
                after = density(points) + log_likelihood(points)
                flowed = cloud.log_weights + after - (before + done * values - log_det)
                flowed = jnp.where(jnp.isfinite(flowed), flowed, -jnp.inf)
                even = jnp.exp(2 * jax.nn.logsumexp(flowed) - jax.nn.logsumexp(2 * flowed - cloud.log_weights))
                fits = (even > settings.flow) & (ess(flowed) > jnp.maximum(settings.least * n, stay_ess))
                fits = fits & (jax.nn.logsumexp(flowed) > least) & apart
                if learned:
                    fits = fits & (stay_ess > SEEN) & (left_out(points, flowed) < LEFT_OUT)
                return _Flowed(points, flowed, even, fits, jnp.asarray(learned))

            def left_out(points, flowed):
                frame = whitening_of(points, jnp.exp(normalised(flowed)), shrink=False)
                away = jnp.sum(frame.whiten(cloud.points) ** 2, axis=1) > (d**0.5 + FAR) ** 2
                return jnp.exp(normalised(stay)) @ away

            def learned():
                slopes = pull(jnp.ones_like(before))[0] + done * value_and_score(cloud.points)[1]
                law = Known(before + done * values, slopes)
                moved = transport(cloud.points, cloud.weights, law, rest)
                return tried(moved.points, moved.log_det, True)

            affine = affine_flow(cloud.points, cloud.weights, rest)
            flow = tried(affine.points, affine.log_det, False)
            if transport is not None:
                flow = jax.lax.cond(flow.fits | ~apart, lambda: flow, learned)

            def take_flow():
                gained = jax.nn.logsumexp(flow.log_weights)
                weighed = cloud.at(flow.points, flow.log_weights - gained)
                even = cloud.at(evened(flow.points, cloud.weights, weighed.weights))
                moved = jax.tree.map(lambda a, b: jnp.where(flow.even > settings.even, a, b), even, weighed)
                taken = absorbed(moved, gained, FLOWED, 0, result.acceptance, density.kernels.width, paths=paths)
                return jnp.ones(()), eqx.tree_at(lambda r: r.learned, taken, flow.learned)

            def temper():
                share = tempering_share(cloud.log_weights, values, left, settings.temper * n, shortest=1e-4 * left)
                done_now, step = _temper(temper_key, cloud, values, done, share, density, log_likelihood, settings)
                return done_now, eqx.tree_at(lambda r: r.paths, step, paths, is_leaf=lambda leaf: leaf is None)

            if instead is None:
                return jax.lax.cond(flow.fits, take_flow, temper)
            skip = lambda: (jnp.array(False), absorbed(cloud, 0.0, OVERSAMPLED, paths=paths))
            fine, other = jax.lax.cond(~flow.fits & (result.rounds == 0), instead, skip)
            take_other = lambda: (jnp.ones(()), other)
            return jax.lax.cond(flow.fits, take_flow, lambda: jax.lax.cond(fine, take_other, temper))

        done, step = jax.lax.cond((stay_ess > settings.stay * n) & apart, weigh, flow_or_temper)
        total = result.log_predictive + step.log_predictive
        # a map goes in one stride where tempering would halve the cloud again and again: how often, is a warning
        halved = jnp.ceil(jnp.log2(n / jnp.maximum(stay_ess, 1))).astype(jnp.int32)
        rounds = jnp.maximum(jnp.where(step.learned, halved, step.rounds), 1)
        # the kind of the whole step is its least exact part
        move = jnp.maximum(result.move, step.move)
        step = Absorbed(
            step.cloud,
            total,
            move,
            result.rounds + rounds,
            step.acceptance,
            step.width,
            (done < 1) | step.unfinished,
            step.error,
            step.beyond,
            step.paths,
            step.renewed,
            step.learned,
        )
        return _Progress(key, done, step)

    def unfinished(progress: _Progress):
        return (progress.done < 1) & (progress.result.rounds < settings.rounds)

    start = _Progress(key, jnp.zeros(()), absorbed(cloud, 0.0, WEIGHED, paths=paths))
    result = jax.lax.while_loop(unfinished, body, start).result
    # paths have a law of their own, which asks for no density of a cloud
    judged = lambda: (
        result.cloud.weights @ density.beyond(result.cloud.points),
        error_of_density(result.cloud, density),
    )
    none = jnp.zeros((), cloud.points.dtype)
    beyond, error = jax.lax.cond(result.renewed, lambda: (none, none), judged)
    return eqx.tree_at(lambda r: (r.beyond, r.error), result, (beyond, error))


def error_of_density(cloud: Cloud, density: PredictiveDensity) -> Array:
    """How far the mean depends on a density that is only estimated, in standard deviations: what narrower kernels would
    change, and half of what the two halves of its centres disagree by."""
    whitening = whitening_of(cloud.points, cloud.weights, shrink=False)
    now = density(cloud.points)

    def mean_by(variation) -> Array:
        width, keep = variation
        other = density.varied(width, keep)
        weights = jnp.exp(normalised(cloud.log_weights + other(cloud.points) - now))
        return weights @ whitening.whiten(cloud.points)

    first = jnp.arange(density.kernels.log_weights.shape[0]) % 2 == 0
    keep = jnp.stack([first, ~first, jnp.ones_like(first)])
    one, other, narrower = jax.lax.map(mean_by, (jnp.array([1.0, 1.0, NARROWER]), keep))  # compiled once for all
    # where one Gaussian is as likely as any kernels, narrower ones tell of a few heavy particles only
    narrower = jnp.where(density.kernels.width > 0.99, 0, narrower)
    return jnp.sqrt(jnp.mean((0.5 * (one - other)) ** 2 + narrower**2))


class _Proposal(eqx.Module):
    """A place in the frame of the target: so much of where a particle is, and so much noise."""

    keep: Array
    noise: Array
    normal: Array  # 1: leaves the normal of the frame as it is (keep² + noise² = 1); 0: a random walk

    @staticmethod
    def kinds(d: int) -> "_Proposal":
        """Anywhere, towards the middle, and walks far, middling and near: one of them fits, whatever the shape of the
        target. Those that know the normal get through ten dimensions, where walks have to be short."""
        draws = ((0.0, 1.0, 1.0), (0.6, 0.8, 1.0), (0.9, 0.19**0.5, 1.0))
        walks = tuple((1.0, length / d**0.5, 0.0) for length in (2.0, 0.6, 0.2))
        return _Proposal(*jnp.asarray(draws + walks).T[:, :, None])


class _Walker(eqx.Module):
    points: Array
    target: Array
    accepted: Array


def _temper(key, cloud: Cloud, values, done, share, density: PredictiveDensity, log_likelihood, settings: Settings):
    """Resample by a share of the likelihood; Metropolis moves in the frame of the target."""
    n, d = cloud.points.shape
    resample_key, walk_key = jax.random.split(key)
    tempered = cloud.log_weights + share * values
    gained = jax.nn.logsumexp(tempered)
    now = resampled(resample_key, cloud.points, tempered, cloud.parent)
    frame = whitening_of(cloud.points, jnp.exp(normalised(tempered)), shrink=False)
    kinds = _Proposal.kinds(d)

    def target(points):
        value = density(points) + (done + share) * log_likelihood(points)
        return jnp.where(jnp.isnan(value), -jnp.inf, value)

    def walk(walker: _Walker, key):
        kind_key, noise_key, accept_key = jax.random.split(key, 3)
        kind = jax.tree.map(lambda leaf: leaf[jax.random.randint(kind_key, (n,), 0, leaf.shape[0])], kinds)
        here = frame.whiten(walker.points)
        there = kind.keep * here + kind.noise * jax.random.normal(noise_key, (n, d))
        proposed = frame.restore(there)
        # of going back over going there
        odds = 0.5 * kind.normal[:, 0] * jnp.sum(there**2 - here**2, axis=1)
        value = target(proposed)
        accept = jnp.log(jax.random.uniform(accept_key, (n,))) < value - walker.target + odds
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
    return done + share, absorbed(moved, gained, TEMPERED, 0, walker.accepted, density.kernels.width)
