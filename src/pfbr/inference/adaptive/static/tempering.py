"""Let the new row in by shares that keep the effective sample size; after each share resample and move."""

import equinox as eqx
import jax
from jax import Array
from jax import numpy as jnp

from pfbr.inference.adaptive.static.kernels import Tuning, move_until_mixed
from pfbr.inference.adaptive.static.target import Evaluation
from pfbr.inference.adaptive.static.weights import clean, normalise, uniform_log_weights
from pfbr.particles.particles import ess
from pfbr.particles.resampling import systematic
from pfbr.particles.tempering_share import tempering_share
from pfbr.particles.whitening import weighted_mean, whitening_of

SHORTEST = 1e-10  # share of a row: under vague priors the first one may be 1e-8


class Tempering(eqx.Module):
    """The carry: a weighted cloud for prior · past · rowᵗ, and what it took to get there."""

    key: Array
    t: Array
    points: Array
    evaluation: Evaluation
    log_weights: Array  # normalised
    log_ratio: Array  # log evidence gained since t = 0
    tuning: Tuning
    finished: Array  # bool: t = 1, resampled and moved
    rounds: Array  # int32 of moves at t = 1
    stages: Array  # int32
    moves: Array  # int32
    acceptance: Array  # of the last stage
    variance: Array  # of the mean of a coordinate, in posterior variances: what a chain that forgets slowly leaves
    log_variance: Array  # of the log evidence ratio
    arrived: Array  # (d,) mean of the cloud when the row was in, before the moves at t = 1
    outside: Array  # share of the last stage's proposals where the target is zero


def share_to_keep(rows: Array, settings) -> Array:
    """Of the particles, at every resampling: more of them while rows are few and tails long."""
    early = settings.early_rows / (settings.early_rows + rows)
    return settings.temper_ess + (settings.early_ess - settings.temper_ess) * early


def temper(evaluate, begin: Tempering, rows: Array, settings) -> Tempering:
    n = begin.points.shape[0]
    dtype = begin.points.dtype
    # Few rows: moves cost next to nothing, and the posterior is at its worst (a noise scale free down to zero)
    extra = settings.early_moves * settings.early_rows // (settings.early_rows + rows)
    enough = jnp.where(rows < settings.early_rows, settings.early_rounds, 1)  # frames are fitted anew each time
    keep = share_to_keep(rows, settings)

    def stage(c: Tempering) -> Tempering:
        key, k_resample, k_move = jax.random.split(c.key, 3)

        # How much of the row: as much as keeps the ESS; the last stage allowed takes what is left
        left = 1 - c.t
        share = tempering_share(c.log_weights, c.evaluation.new, left, keep * n, shortest=SHORTEST)
        share = jnp.where(c.t >= 1, 0, jnp.where(c.stages + 1 >= settings.max_stages, left, share))
        weighed = clean(c.log_weights + jnp.where(share > 0, share * c.evaluation.new, 0))
        t = jnp.where(share >= left, 1.0, c.t + share).astype(dtype)
        weighed, gained = normalise(weighed)
        survived = ess(weighed)
        hopeless = ~(survived > 0)  # the row is impossible at every particle: keep the cloud, let the flag say so
        weighed = jnp.where(hopeless, c.log_weights, weighed)

        # Resample, and move in the frame of the weighted cloud
        frame = whitening_of(c.points, jax.nn.softmax(weighed))
        chosen = systematic(k_resample, weighed, weighed.shape[0])
        last = t >= 1
        rounds = c.rounds + last
        moved = move_until_mixed(
            k_move,
            evaluate,
            t,
            c.points[chosen],
            c.evaluation.take(chosen),
            frame,
            c.tuning,
            memory=jnp.where(last, settings.memory, settings.memory_between),
            least=settings.least_moves + jnp.where(last, extra // enough, extra // 4),
            most=jnp.where(last, (settings.most_moves + extra) // enough, settings.most_moves_between + extra),
        )

        # Resampling adds the variance of the weights, moving forgets all but memory² of what has piled up
        forgotten = jnp.clip(moved.memory, 0, 1) ** 2
        piled = c.variance + 1 / jnp.maximum(survived, 1)
        added = jnp.maximum(1 / jnp.maximum(survived, 1) - 1 / n, 0) + c.variance
        log_variance = c.log_variance + jnp.where(share > 0, added, 0)
        return Tempering(
            key,
            t,
            moved.points,
            moved.evaluation,
            uniform_log_weights(n, dtype),
            c.log_ratio + jnp.where(hopeless, -jnp.inf, gained),
            moved.tuning,
            (rounds >= enough) | hopeless,
            rounds,
            c.stages + 1,
            c.moves + moved.moves,
            moved.acceptance,
            jnp.where(hopeless, jnp.inf, forgotten * piled + (1 - forgotten) / n),
            jnp.where(hopeless, jnp.inf, log_variance),
            jnp.where(last & (c.t < 1), weighted_mean(c.points, jax.nn.softmax(weighed)), c.arrived),
            moved.outside,
        )

    return jax.lax.while_loop(lambda c: ~c.finished, stage, begin)
