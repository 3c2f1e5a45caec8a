"""Poisson counts whose log rate is a random walk of unknown variance: the variance learned beside the rate.

    python -m benchmarks.streams.counts_unknown --seed 5000 --streams 25

Truth: a grid filter of the rate under each of 81 values of the variance's logarithm, and their posterior by the sums of
log predictives. Right to about 0.005 sd (half as many cells and values change no mean by more).
"""

import argparse

import jax
import numpy as np
from jax import numpy as jnp
from scipy.special import logsumexp

from benchmarks.streams.volatility_unknown import follow, rms
from pfbr.models.base import StateSpaceModel
from pfbr.models.base import normal_log_densities as normal

MEAN, STD = np.float32(np.log(0.15)), np.float32(0.6)  # of the log standard deviation of the walk's steps
START, SPREAD = np.float32(1.0), np.float32(1.5)  # of the log rate
STEPS, TIMES = 500, (50, 200, 500)
VALUES, CELLS, REACH = 81, 600, 3.5  # of the log standard deviation; of the log rate; prior sd covered either way


class UnknownCounts(StateSpaceModel):
    @property
    def dim(self) -> int:
        return 1

    def sample_parameters(self, key):
        return MEAN + STD * jax.random.normal(key, (1,))

    def log_parameters(self, params):
        return jnp.sum(normal(params, MEAN, STD))

    def prior_from_normal(self, z):
        return START + SPREAD * z

    def sample_prior(self, key):
        return self.prior_from_normal(jax.random.normal(key, (1,)))

    def log_prior(self, x):
        return normal(x[0], START, SPREAD)

    def transition_from_normal(self, x, z, *, params):
        return x + jnp.exp(params[0]) * z

    def sample_transition(self, key, x, *, params):
        return self.transition_from_normal(x, jax.random.normal(key, (1,)), params=params)

    def log_likelihood(self, x, observation):
        return jnp.sum(observation * x - jnp.exp(x) - jax.scipy.special.gammaln(observation + 1))

    def sample_observation(self, key, x):
        return jax.random.poisson(key, jnp.exp(x)).astype(jnp.float32)


def simulate(seed: int, steps: int = STEPS) -> tuple[np.ndarray, float]:
    """Counts (T, 1), and the log standard deviation that made them, half a prior sd around its mean. A walk that leaves
    the rates 0.2 to 60 is turned back at the edge, which is rare."""
    rng = np.random.default_rng(seed)
    theta = float(MEAN + 0.5 * STD * rng.standard_normal())
    x, counts = float(START + 0.5 * rng.standard_normal()), []
    for _ in range(steps):
        x = float(np.clip(x + np.exp(theta) * rng.standard_normal(), np.log(0.2), np.log(60)))
        counts.append(rng.poisson(np.exp(x)))
    return np.array(counts, np.float32)[:, None], theta


@jax.jit
def grid_filters(thetas, counts):
    """Log predictives (n, T), means and variances of the log rate, for each log standard deviation."""
    at = jnp.linspace(-5.0, 7.5, CELLS)

    def one(theta):
        kernel = jnp.exp(-0.5 * ((at[:, None] - at[None]) / jnp.exp(theta)) ** 2)
        kernel = kernel / jnp.sum(kernel, axis=0)

        def step(p, y):
            value = y * at - jnp.exp(at) - jax.scipy.special.gammaln(y + 1)
            top = jnp.max(value)
            p = (kernel @ p) * jnp.exp(value - top)
            total = jnp.sum(p)
            p = p / total
            mean = p @ at
            return p, (jnp.log(total) + top, mean, p @ (at - mean) ** 2)

        p = jnp.exp(-0.5 * ((at - START) / SPREAD) ** 2)
        return jax.lax.scan(step, p / jnp.sum(p), counts)[1]

    return jax.lax.map(one, thetas)


def truth(counts: np.ndarray) -> list[dict[str, float]]:
    """At each of TIMES: mean and sd of the parameter and of the state, and the log evidence."""
    thetas = np.linspace(MEAN - REACH * STD, MEAN + REACH * STD, VALUES)
    gained, means, variances = (
        np.asarray(part, float) for part in grid_filters(jnp.asarray(thetas, jnp.float32), jnp.asarray(counts[:, 0]))
    )
    log_prior = -0.5 * ((thetas - MEAN) / STD) ** 2
    log_prior -= logsumexp(log_prior)
    found = []
    for t in TIMES:
        log_p = log_prior + gained[:, :t].sum(axis=1)
        evidence = logsumexp(log_p)
        p = np.exp(log_p - evidence)
        mean, state = p @ thetas, p @ means[:, t - 1]
        found.append(
            {
                "mean": mean,
                "sd": np.sqrt(p @ (thetas - mean) ** 2),
                "state": state,
                "state sd": np.sqrt(p @ (variances[:, t - 1] + (means[:, t - 1] - state) ** 2)),
                "evidence": evidence,
            }
        )
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--streams", type=int, default=25)
    parser.add_argument("--particles", type=int, default=256)
    args = parser.parse_args()
    model, rows = UnknownCounts(), []
    follow(model, simulate(0, 60)[0], 0, args.particles, ())  # compiles
    for seed in range(args.seed, args.seed + args.streams):
        counts = simulate(seed)[0]
        found, spent, flagged, renewals = follow(model, counts, seed, args.particles, TIMES)
        for (mean, root, state, evidence), true in zip(found, truth(counts), strict=True):
            away, off = (mean[0] - true["mean"]) / true["sd"], (state - true["state"]) / true["state sd"]
            beside = evidence - true["evidence"]
            rows.append((away, root[0, 0] / true["sd"], off, beside, spent.mean(), spent.max(), len(flagged), renewals))
    each = np.array(rows).reshape(args.streams, len(TIMES), -1)
    for i, t in enumerate(TIMES):
        away, spread, state, evidence, mean_ms, longest, flags, renewals = each[:, i].T
        print(
            f"{t} steps, {args.streams} streams, seed {args.seed}: log standard deviation {rms(away):.3f} sd (worst "
            f"{np.abs(away).max():.2f}), spread {spread.mean():.2f}, state {rms(state):.3f} (worst "
            f"{np.abs(state).max():.3f}), evidence {rms(evidence):.2f} nats (worst {np.abs(evidence).max():.2f}), "
            f"{mean_ms.mean():.1f} CPU ms a step, longest {longest.max():.0f}; {flags.sum():.0f} flags, "
            f"{renewals.mean():.0f} renewals a stream"
        )


if __name__ == "__main__":
    main()
