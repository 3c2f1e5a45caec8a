"""Metropolis moves of several kinds at once, each particle by a kind drawn at random, until the cloud has forgotten
where it started.

Kinds, in the frame of the cloud, by turns plain and with funnels straightened (`funnel`): *independence* (the Gaussian
that the scores describe, with wide tails), *Langevin* (drift along the score, cut off where it is long), *difference*
(along the line between two particles of the starting cloud: no gradient, jumps between modes, follows bent clouds).
What moves farther is drawn more often. Step sizes are spread over a factor of twenty, so that some fit wherever a
particle stands. The number of moves is not set: they stop once no coordinate and no square of one, in the white frame,
is still correlated with its start.
"""

import equinox as eqx
import jax
from jax import Array
from jax import numpy as jnp

from pfbr.inference.adaptive.static.affine import GaussianFit, fit_gaussian
from pfbr.inference.adaptive.static.funnel import Funnel, fit_funnel
from pfbr.inference.adaptive.static.target import Evaluation
from pfbr.particles.whitening import Whitening

INDEPENDENCE, LANGEVIN, DIFFERENCE = 0, 1, 2
KINDS = 3
LOG_SPREAD = (-2.5, 0.5)  # of step sizes about the adapted one
ACCEPTANCE = 0.5  # aimed at over that spread
WIDE, WIDE_CHANCE = 2.0, 0.1  # of the independence kind's tails
FLOOR = 0.1  # least probability of a kind: what did not work yesterday may work today


class Tuning(eqx.Module):
    """What earlier moves have learned; carried from row to row."""

    steps: Array  # (3,) step sizes (that of the independence kind is not used)
    gains: Array  # (3,) mean squared jump of each kind, in the white frame per coordinate


class Moved(eqx.Module):
    points: Array
    evaluation: Evaluation
    tuning: Tuning
    moves: Array  # int32
    acceptance: Array
    memory: Array  # largest correlation with the start that is left
    outside: Array  # share of the proposals where the target is zero


class Chain(eqx.Module):
    key: Array
    points: Array
    evaluation: Evaluation
    tuning: Tuning
    moves: Array
    accepted: Array
    memory: Array
    outside: Array


def initial_tuning(dim: int, dtype) -> Tuning:
    step = dim**-0.5
    return Tuning(jnp.asarray([1.0, step, step], dtype), jnp.asarray([0.5, 0.5, 0.25], dtype))


def probabilities(tuning: Tuning) -> Array:
    share = tuning.gains / jnp.maximum(jnp.sum(tuning.gains), jnp.finfo(tuning.gains.dtype).tiny)
    return FLOOR + (1 - KINDS * FLOOR) * share


def correlation(now: Array, start: Array) -> Array:
    """Per column, between particles now and where they started; 1 where nothing varies."""
    a, b = now - jnp.mean(now, 0), start - jnp.mean(start, 0)
    scale = jnp.sqrt(jnp.sum(a**2, 0) * jnp.sum(b**2, 0))
    return jnp.where(scale > 0, jnp.sum(a * b, 0) / jnp.where(scale > 0, scale, 1), 1.0)


def memory_of(now: Array, start: Array) -> Array:
    """Worst correlation left, of places and of distances from the centre, per white coordinate."""
    return jnp.maximum(jnp.max(correlation(now, start)), jnp.max(correlation(now**2, start**2)))


def drift(scores: Array) -> Array:
    """Scores no longer than a few times what a Gaussian target would have: a cliff must not throw particles away."""
    d = scores.shape[1]
    length = jnp.sqrt(jnp.sum(scores**2, axis=1, keepdims=True))
    limit = 4 * jnp.sqrt(jnp.asarray(d, scores.dtype))
    return scores * (limit / jnp.maximum(length, limit))


class IndependenceProposal(eqx.Module):
    """The Gaussian fit, with a small chance twice as wide: tails must not be thinner than the target's."""

    mean: Array
    root: Array  # root rootᵀ = covariance
    precision: Array

    @classmethod
    def of(cls, fit: GaussianFit) -> "IndependenceProposal":
        values, vectors = jnp.linalg.eigh(fit.precision)
        values = jnp.maximum(values, jnp.finfo(values.dtype).tiny)
        return cls(fit.mean, vectors / jnp.sqrt(values), fit.precision)

    def draw(self, uniform: Array, noise: Array) -> Array:
        return self.mean + (jnp.where(uniform < WIDE_CHANCE, WIDE, 1.0) * noise) @ self.root.T

    def log_density(self, white: Array) -> Array:
        """Without constants that cancel in a ratio."""
        z = white - self.mean
        square = jnp.sum((z @ self.precision) * z, axis=1)
        wide = jnp.log(WIDE_CHANCE / (1 - WIDE_CHANCE)) - white.shape[1] * jnp.log(WIDE)
        return jnp.logaddexp(-0.5 * square, wide - 0.5 * square / WIDE**2)


class Prepared(eqx.Module):
    """A frame, where the particles started in it, and the independence proposal fitted there."""

    latent: Funnel
    start: Array
    proposal: IndependenceProposal


def move_until_mixed(
    key: Array,
    evaluate,
    t: Array,
    points: Array,
    evaluation: Evaluation,
    frame: Whitening,
    tuning: Tuning,
    *,
    memory: Array,
    least: Array,
    most: Array,
) -> Moved:
    n, d = points.shape
    dtype = points.dtype
    white = frame.whiten(points)

    # Two frames by turns, each with its own snapshot and fit: straightened, and plain where no funnel fits
    def prepare(latent: Funnel) -> Prepared:
        start = latent.latent(points)
        scores = latent.scores(start, evaluation.score(t))
        fit = fit_gaussian(start, scores, jnp.full(n, 1 / n, dtype))
        return Prepared(latent, start, IndependenceProposal.of(fit))

    funnel = fit_funnel(points, evaluation.score(t), frame)
    both = jax.vmap(prepare)(jax.tree.map(lambda *a: jnp.stack(a), funnel, funnel.straight()))

    def body(chain: Chain) -> Chain:
        # every particle makes one move of one kind, so that one draw of noise serves all kinds
        key, k_noise, k_uniform = jax.random.split(chain.key, 3)
        noise = jax.random.normal(k_noise, (n, d), dtype)
        uniform = jax.random.uniform(k_uniform, (7, n, 1), dtype)
        edges = jnp.cumsum(probabilities(chain.tuning))
        kind = jnp.sum(uniform[0] > edges[:-1], axis=1, keepdims=True)
        low, high = LOG_SPREAD
        width = chain.tuning.steps[kind] * jnp.exp(low + (high - low) * uniform[1])
        now = jax.tree.map(lambda a: a[chain.moves % 2], both)
        latent, proposal, place = now.latent, now.proposal, now.latent.latent(chain.points)
        pick = lambda u: now.start[jnp.minimum((u[:, 0] * n).astype(jnp.int32), n - 1)]

        ahead = 0.5 * width * drift(latent.scores(place, chain.evaluation.score(t))) + noise
        langevin = place + width * ahead
        independent = proposal.draw(uniform[2], noise)
        # one whole difference in three leads from mode to mode; a little noise: a resampled cloud has few lines left
        line = pick(uniform[3]) - pick(uniform[4])
        difference = place + jnp.where(uniform[5] < 1 / 3, 1.0, width) * line + 0.1 * width * noise
        there = jnp.where(kind == INDEPENDENCE, independent, jnp.where(kind == LANGEVIN, langevin, difference))
        points = latent.points(there)
        evaluation = evaluate(points)

        # Metropolis–Hastings ratio of the kind that was drawn; a difference is symmetric. The noise that a Langevin
        # step back would have to draw is what was drawn and both drifts, turned round.
        back = ahead + 0.5 * width * drift(latent.scores(there, evaluation.score(t)))
        of_langevin = 0.5 * jnp.sum(noise**2 - back**2, axis=1)
        of_independence = proposal.log_density(place) - proposal.log_density(there)
        kind = kind[:, 0]
        correction = jnp.where(kind == INDEPENDENCE, of_independence, jnp.where(kind == LANGEVIN, of_langevin, 0))
        log_ratio = evaluation.value(t) - chain.evaluation.value(t) + correction
        log_ratio += latent.log_det(there) - latent.log_det(place)
        log_ratio = jnp.where(jnp.isnan(log_ratio), -jnp.inf, log_ratio)
        accept = jnp.log(uniform[6, :, 0]) < log_ratio

        # What each kind achieved: its step size and how often it is drawn next
        jump = jnp.where(accept, jnp.mean((there - place) ** 2, axis=1), 0)
        of_kind = kind[:, None] == jnp.arange(KINDS)
        number = jnp.maximum(jnp.sum(of_kind, 0), 1)
        rate = jnp.sum(of_kind & accept[:, None], 0) / number
        gain = jnp.sum(jnp.where(of_kind, jump[:, None], 0), 0) / number
        steps = chain.tuning.steps * jnp.exp(0.5 * (rate - ACCEPTANCE)).astype(dtype)
        tuning = Tuning(jnp.clip(steps, 0.01, 5.0), (0.7 * chain.tuning.gains + 0.3 * gain).astype(dtype))

        points = jnp.where(accept[:, None], points, chain.points)
        return Chain(
            key,
            points,
            evaluation.where(accept, chain.evaluation),
            tuning,
            chain.moves + 1,
            chain.accepted + jnp.mean(accept, dtype=dtype),
            memory_of(frame.whiten(points), white),
            chain.outside + jnp.mean(jnp.isneginf(evaluation.value(t)), dtype=dtype),
        )

    def go_on(chain: Chain):
        return (chain.moves < least) | ((chain.memory > memory) & (chain.moves < most))

    zero = jnp.zeros((), jnp.int32)
    none = jnp.zeros((), dtype)
    begin = Chain(key, points, evaluation, tuning, zero, none, jnp.ones((), dtype), none)
    end = jax.lax.while_loop(go_on, body, begin)
    number = jnp.maximum(end.moves, 1)
    return Moved(
        end.points,
        end.evaluation,
        end.tuning,
        end.moves,
        end.accepted / number,
        end.memory,
        end.outside / number,
    )
