"""Stochastic volatility whose level, persistence and noise are unknown too: errors on the way, and the longest update.

    python -m benchmarks.streams.volatility_unknown --seed 5000 --streams 25
    python -m benchmarks.streams.volatility_unknown --seed 5000 --streams 3 --steps 10000

Truth: importance sampling over the parameters from wide Student fits, each draw with a grid filter of its own (a
likelihood without noise). Its error is 1/√ESS of those weights, in posterior standard deviations.
"""

import argparse
import time

import jax
import numpy as np
from jax import numpy as jnp

import pfbr
from benchmarks.streams.problem import TRUTH
from pfbr.io.records import write_npz
from pfbr.models.base import StateSpaceModel
from pfbr.models.base import normal_log_densities as normal

# of the parameters' prior: level, logit of the persistence, log of the noise
MEAN, STD = np.array([0.0, 3.5, np.log(0.2)], np.float32), np.array([1.0, 0.7, 0.5], np.float32)
TIMES = {1000: (100, 300, 1000), 10_000: (1000, 3000, 10_000)}  # at which errors are measured
CELLS, DRAWS = 100, 400  # of a grid; from each fit
FREEDOM, WIDER = 5, 1.3  # of the Student fits


def natural(params):
    return params[0], jax.nn.sigmoid(params[1]), jnp.exp(params[2])


class UnknownVolatility(StateSpaceModel):
    @property
    def dim(self) -> int:
        return 1

    def sample_parameters(self, key):
        return MEAN + STD * jax.random.normal(key, (3,))

    def log_parameters(self, params):
        return jnp.sum(normal(params, MEAN, STD))

    def _start(self, params):
        mu, phi, sigma = natural(params)
        return mu, sigma / jnp.sqrt(1 - phi**2)

    def sample_prior(self, key, *, params):
        return self.prior_from_normal(jax.random.normal(key, (1,)), params=params)

    def prior_from_normal(self, z, *, params):
        mean, std = self._start(params)
        return mean + std * z

    def log_prior(self, x, *, params):
        return normal(x[0], *self._start(params))

    def sample_transition(self, key, x, *, params):
        return self.transition_from_normal(x, jax.random.normal(key, (1,)), params=params)

    def transition_from_normal(self, x, z, *, params):
        mu, phi, sigma = natural(params)
        return mu + phi * (x - mu) + sigma * z

    def log_likelihood(self, x, observation):
        return normal(observation, 0.0, jnp.exp(0.5 * x))

    def sample_observation(self, key, x):
        return jnp.exp(0.5 * x) * jax.random.normal(key)


def simulate(seed: int, steps: int = 1000) -> tuple[np.ndarray, np.ndarray]:
    """Observations (T, 1), and the parameters that made them, half a prior standard deviation around its mean."""
    rng = np.random.default_rng(seed)
    theta = MEAN + 0.5 * STD * rng.standard_normal(3)
    mu, phi, sigma = theta[0], 1 / (1 + np.exp(-theta[1])), np.exp(theta[2])
    x, ys = mu + sigma / np.sqrt(1 - phi**2) * rng.standard_normal(), []
    for _ in range(steps):
        x = mu + phi * (x - mu) + sigma * rng.standard_normal()
        ys.append(np.exp(0.5 * x) * rng.standard_normal())
    return np.array(ys, np.float32)[:, None], theta


@jax.jit
def grid_filters(thetas, ys):
    """Log predictives (n, T), filter means and variances, on a grid of five stationary sd either way."""

    def one(theta):
        mu, phi, sigma = natural(theta)
        scale = sigma / jnp.sqrt(1 - phi**2)
        at = mu + scale * jnp.linspace(-5, 5, CELLS)
        kernel = jnp.exp(-0.5 * ((at[:, None] - mu - phi * (at[None] - mu)) / sigma) ** 2)
        kernel = kernel / jnp.sum(kernel, axis=0)
        p = jnp.exp(-0.5 * ((at - mu) / scale) ** 2)

        def step(p, y):
            value = normal(y, 0.0, jnp.exp(0.5 * at))
            top = jnp.max(value)
            p = (kernel @ p) * jnp.exp(value - top)
            total = jnp.sum(p)
            p = p / total
            mean = p @ at
            return p, (jnp.log(total) + top, mean, p @ (at - mean) ** 2)

        return jax.lax.scan(step, p / jnp.sum(p), ys)[1]

    return jax.vmap(one)(thetas)


def truth(seed: int, fits: list[tuple[np.ndarray, np.ndarray]], steps: int = 1000) -> dict[str, np.ndarray]:
    """At each of TIMES[steps]: mean, sd, state, state_sd, evidence, ess; from `truth/`, or made and kept there.

    `fits`: mean and Cholesky root of rough posteriors, whatever made them: importance weights put them right.
    """
    path = TRUTH / f"volatility-unknown-{seed}{'' if steps == 1000 else f'-{steps}'}.npz"
    if not path.exists():
        write_npz(path, importance_sampling(seed, fits, steps))
    with np.load(path) as stored:
        return {name: stored[name] for name in stored.files}


def importance_sampling(seed: int, fits, steps: int = 1000) -> dict[str, np.ndarray]:
    from scipy.special import gammaln, logsumexp

    rng, ys = np.random.default_rng(seed + 5), jnp.asarray(simulate(seed, steps)[0][:, 0])
    draws, densities = [], []
    for mean, root in fits:
        scale = np.sqrt(FREEDOM / rng.chisquare(FREEDOM, (DRAWS, 1)))
        draws.append(mean + WIDER * scale * rng.standard_normal((DRAWS, 3)) @ root.T)
    thetas = np.concatenate(draws)
    half = (FREEDOM + 3) / 2
    for mean, root in fits:
        z = np.linalg.solve(WIDER * root, (thetas - mean).T)
        densities.append(-half * np.log1p(np.sum(z**2, axis=0) / FREEDOM) - np.log(np.diag(WIDER * root)).sum())
    constant = gammaln(half) - gammaln(FREEDOM / 2) - 1.5 * np.log(FREEDOM * np.pi)
    proposal = logsumexp(np.array(densities), axis=0) - np.log(len(densities)) + constant
    prior = np.sum(-0.5 * ((thetas - MEAN) / STD) ** 2 - np.log(STD) - 0.5 * np.log(2 * np.pi), axis=1)
    gained, means, variances = (np.asarray(a, float) for a in grid_filters(jnp.asarray(thetas, jnp.float32), ys))
    total = np.cumsum(gained, axis=1)
    found: dict[str, list] = {name: [] for name in ("mean", "sd", "state", "state_sd", "evidence", "ess")}
    for t in TIMES[steps]:
        log_w = prior + total[:, t - 1] - proposal
        w = np.exp(log_w - logsumexp(log_w))
        mean, state = w @ thetas, w @ means[:, t - 1]
        found["mean"].append(mean)
        found["sd"].append(np.sqrt(w @ (thetas - mean) ** 2))
        found["state"].append(state)
        found["state_sd"].append(np.sqrt(w @ (variances[:, t - 1] + (means[:, t - 1] - state) ** 2)))
        found["evidence"].append(logsumexp(log_w) - np.log(len(log_w)))
        found["ess"].append(1 / np.sum(w**2))
    return {name: np.array(values) for name, values in found.items()}


def follow(model, ys: np.ndarray, key: int, particles: int, times) -> tuple[list, np.ndarray, list, int]:
    """A session: at each of `times` the mean and root of the parameters, the state, the evidence; CPU ms of each
    update; what flagged steps there were, and how many renewals."""
    session, found, spent, flagged, renewals = (
        pfbr.Session(model, key=key, num_particles=particles, undo=0),
        [],
        [],
        [],
        0,
    )
    for t, y in enumerate(ys, start=1):
        begun = time.process_time()
        posterior = session.update(y)
        spent.append(1e3 * (time.process_time() - begun))
        flagged += [t] if posterior.info.flagged else []
        renewals += posterior.info.move == "tempered"
        if t in times:
            w = posterior.weights.astype(float) / posterior.weights.sum()
            theta = np.asarray(posterior.parameters.values, float)
            mean = w @ theta
            root = np.linalg.cholesky((theta - mean).T * w @ (theta - mean))
            found.append((mean, root, posterior.mean()[0], posterior.info.log_evidence))
    return found, np.array(spent), flagged, renewals


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--streams", type=int, default=3)
    parser.add_argument("--particles", type=int, default=256)
    parser.add_argument("--steps", type=int, default=1000, choices=sorted(TIMES))
    args = parser.parse_args()
    model, times, rows = UnknownVolatility(), TIMES[args.steps], []
    follow(model, simulate(0, 200)[0], 0, args.particles, ())  # compiles
    for seed in range(args.seed, args.seed + args.streams):
        ys = simulate(seed, args.steps)[0]
        found, spent, flagged, renewals = follow(model, ys, seed, args.particles, times)
        true = truth(seed, [one[:2] for one in found], args.steps)
        for i, (mean, root, state, evidence) in enumerate(found):
            away = (mean - true["mean"][i]) / true["sd"][i]
            spread = np.mean(np.sqrt(np.sum(root**2, axis=1)) / true["sd"][i])
            off = (state - true["state"][i]) / true["state_sd"][i], evidence - true["evidence"][i]
            rows.append((np.sqrt(np.mean(away**2)), np.abs(away).max(), spread, *off, spent.mean(), spent.max()))
            print(
                f"{seed}, {times[i]} steps: parameters {rows[-1][0]:.2f} sd (worst {rows[-1][1]:.2f}), spread "
                f"{spread:.2f}, state {off[0]:+.3f} sd, evidence {off[1]:+.2f}; truth to "
                f"{1 / np.sqrt(true['ess'][i]):.2f} sd; {spent.mean():.1f} ms a step, longest {spent.max():.0f}; "
                f"{renewals} renewals, {len(flagged)} flags",
                flush=True,
            )
    each = np.array(rows).reshape(args.streams, len(times), -1)
    for i, t in enumerate(times):
        error, worst, spread, state, evidence, mean_ms, longest = each[:, i].T
        print(
            f"{t} steps, {args.streams} streams: parameters {rms(error):.3f} sd (worst stream {error.max():.2f}, worst "
            f"one {worst.max():.2f}), spread {spread.mean():.2f}, state {rms(state):.3f} (worst "
            f"{np.abs(state).max():.3f}), evidence {rms(evidence):.2f} nats (worst {np.abs(evidence).max():.2f}), "
            f"{mean_ms.mean():.1f} CPU ms a step, longest update {longest.max():.0f} ms"
        )


def rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


if __name__ == "__main__":
    main()
