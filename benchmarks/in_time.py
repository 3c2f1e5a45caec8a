"""What a deadline brings and costs: latencies of `Session.update` with and without `max_ms`, and how far provisional
answers are off.

python -m benchmarks.in_time [--rows 1000] [--max-ms 5 1]
A straight line with unknown noise under vague priors (three unknowns), 256 particles, seed 7000. Reports come every ten
milliseconds, or when the last was answered, whichever is later. The error is that of the mean, in posterior standard
deviations of the session without a limit. Each stream runs twice, and the first, which compiles, is left out; so are
the first hundred rows, where vague priors make nearly every row one that moves particles.
"""

import argparse
import time

import jax
import numpy as np
from jax import numpy as jnp

import pfbr

EARLY, EVERY = 100, 0.01


class Line(pfbr.Model):
    unknowns = {"intercept": (), "slope": (), "sigma": pfbr.positive}  # noqa: RUF012 - as users write it

    def sample_prior(self, key):
        a, b, c = jax.random.normal(key, (3,))
        return {"intercept": 100 * a, "slope": 10 * b, "sigma": jnp.exp(2 * c)}

    def log_prior(self, x):
        z = jnp.stack([x["intercept"] / 100, x["slope"] / 10, jnp.log(x["sigma"]) / 2])
        return -0.5 * jnp.sum(z**2) - jnp.log(x["sigma"])

    def log_likelihood(self, x, observation, *, inputs):
        mean = x["intercept"] + x["slope"] * inputs
        return jax.scipy.stats.norm.logpdf(observation, mean, x["sigma"])


def means(posterior) -> np.ndarray:
    return np.array([float(value) for value in posterior.mean().values()])


def spreads(posterior) -> np.ndarray:
    return np.array([float(value) for value in posterior.std().values()])


def streamed(covariates, values, limit: float | None) -> list:
    """Told: latency in ms, mean, spread and whether it was provisional, of each row."""
    told = []
    for repeat in range(2):  # the first compiles, beside provisional answers where there is a limit
        session = pfbr.Session(Line(), key=repeat, max_ms=limit)
        told.clear()
        for x, y in zip(covariates, values, strict=True):
            begun = time.perf_counter()
            posterior = session.update(y, inputs=x)
            took = time.perf_counter() - begun
            told.append((1e3 * took, means(posterior), spreads(posterior), "pending" in posterior.info.details))
            time.sleep(max(EVERY - (time.perf_counter() - begun), 0.0))
            if len(told) == EARLY:
                session.settle()
        session.settle()
    return told[EARLY:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--max-ms", type=float, nargs="*", default=[5.0, 1.0])
    given = parser.parse_args()
    rng = np.random.default_rng(7000)
    covariates = rng.uniform(1950, 2020, given.rows).astype(np.float32) - 1985
    values = (12 + 0.3 * covariates + 2.5 * rng.normal(size=given.rows)).astype(np.float32)
    whole = streamed(covariates, values, None)
    for limit in (None, *given.max_ms):
        told = whole if limit is None else streamed(covariates, values, limit)
        took = np.array([one[0] for one in told])
        off = np.array([np.sqrt(np.mean(((a[1] - b[1]) / b[2]) ** 2)) for a, b in zip(told, whole, strict=True)])
        late = np.array([one[3] for one in told])
        worst = f"off by {off[late].max():.2f} sd at worst" if late.any() else "none is off"
        print(
            f"max_ms {limit}: p50 {np.median(took):.2f} ms, p99 {np.quantile(took, 0.99):.2f}, worst {took.max():.2f}; "
            f"provisional {late.sum()} of {len(late)}, {worst}; others by {off[~late].max(initial=0):.2g}",
            flush=True,
        )


if __name__ == "__main__":
    main()
