"""Stochastic volatility whose level, persistence and noise are unknown too: errors at 100, 300 and 1,000 steps.

    python -m benchmarks.streams.volatility_unknown --seed 5000 --streams 3

Truth: importance sampling over the parameters from wide Student fits, each draw with a grid filter of its own (a
likelihood without noise). Its error is 1/√ESS of those weights, in posterior standard deviations.
"""

import argparse
import time

import jax
import numpy as np
from jax import numpy as jnp

from benchmarks.streams.problem import TRUTH
from pfbr.inference.method import record
from pfbr.inference.registry import as_method
from pfbr.io.records import write_npz
from pfbr.models.base import StateSpaceModel
from pfbr.models.base import normal_log_densities as normal

# of the parameters' prior: level, logit of the persistence, log of the noise
MEAN, STD = np.array([0.0, 3.5, np.log(0.2)], np.float32), np.array([1.0, 0.7, 0.5], np.float32)
STEPS, TIMES = 1000, (100, 300, 1000)
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
        mean, std = self._start(params)
        return mean + std * jax.random.normal(key, (1,))

    def log_prior(self, x, *, params):
        return normal(x[0], *self._start(params))

    def sample_transition(self, key, x, *, params):
        mu, phi, sigma = natural(params)
        return mu + phi * (x - mu) + sigma * jax.random.normal(key, (1,))

    def log_likelihood(self, x, observation):
        return normal(observation, 0.0, jnp.exp(0.5 * x))

    def sample_observation(self, key, x):
        return jnp.exp(0.5 * x) * jax.random.normal(key)


def simulate(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Observations (T, 1), and the parameters that made them, half a prior standard deviation around its mean."""
    rng = np.random.default_rng(seed)
    theta = MEAN + 0.5 * STD * rng.standard_normal(3)
    mu, phi, sigma = theta[0], 1 / (1 + np.exp(-theta[1])), np.exp(theta[2])
    x, ys = mu + sigma / np.sqrt(1 - phi**2) * rng.standard_normal(), []
    for _ in range(STEPS):
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


def truth(seed: int, fits: list[tuple[np.ndarray, np.ndarray]]) -> dict[str, np.ndarray]:
    """At each of TIMES: mean, sd, state, state_sd, evidence, ess; from `truth/`, or made and kept there.

    `fits`: mean and Cholesky root of rough posteriors, whatever made them: importance weights put them right.
    """
    path = TRUTH / f"volatility-unknown-{seed}.npz"
    if not path.exists():
        write_npz(path, importance_sampling(seed, fits))
    with np.load(path) as stored:
        return {name: stored[name] for name in stored.files}


def importance_sampling(seed: int, fits) -> dict[str, np.ndarray]:
    from scipy.special import gammaln, logsumexp

    rng, ys = np.random.default_rng(seed + 5), jnp.asarray(simulate(seed)[0][:, 0])
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
    for t in TIMES:
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--streams", type=int, default=3)
    parser.add_argument("--particles", type=int, default=256)
    args = parser.parse_args()
    model, compiled, errors = UnknownVolatility(), None, []
    method = as_method("auto", model, rows=STEPS)
    for seed in range(args.seed, args.seed + args.streams):
        key, ys = jax.random.key(seed), jnp.asarray(simulate(seed)[0])
        compiled = compiled or record.lower(key, method, model, ys, args.particles).compile()
        begun = time.process_time()
        said = jax.block_until_ready(compiled(key, method, model, ys, args.particles))
        ms = 1e3 * (time.process_time() - begun) / STEPS
        fits, states = [], []
        for t in TIMES:
            w = np.exp(np.asarray(said.particles.log_weights[t - 1], float))
            w /= w.sum()
            theta = np.asarray(said.parameters[t - 1], float)
            mean = w @ theta
            fits.append((mean, np.linalg.cholesky((theta - mean).T * w @ (theta - mean))))
            states.append(w @ np.asarray(said.particles.points[t - 1, :, 0], float))
        true = truth(seed, fits)
        for i, t in enumerate(TIMES):
            mean, root = fits[i]
            away = (mean - true["mean"][i]) / true["sd"][i]
            errors.append(np.sqrt(np.mean(away**2)))
            spread = np.mean(np.sqrt(np.sum(root**2, axis=1)) / true["sd"][i])
            state = (states[i] - true["state"][i]) / true["state_sd"][i]
            evidence = float(said.info.log_evidence[t - 1]) - true["evidence"][i]
            print(
                f"{seed}, {t} steps: parameters {errors[-1]:.2f} sd (worst {np.abs(away).max():.2f}), spread "
                f"{spread:.2f}, state {state:+.2f} sd, evidence {evidence:+.2f}; truth to "
                f"{1 / np.sqrt(true['ess'][i]):.2f} sd; {ms:.1f} ms a step",
                flush=True,
            )
    print(f"parameters, root mean square over streams and times: {np.sqrt(np.mean(np.square(errors))):.3f} sd")


if __name__ == "__main__":
    main()
