"""A randomised experiment, participant by participant: does free care send more people to a doctor, and when to stop?

python examples/experiment.py --picture docs/images/gallery_experiment.png
"""

from statistics import NormalDist

import jax
import numpy as np
import pictures
from common import command_line, table
from jax import numpy as jnp

import pfbr

COVARIATES = ("limitation", "diseases", "good", "fair", "poor")
BEARABLE = 0.001  # stop when choosing what looks better is expected to cost less than this, in log odds


class Visit(pfbr.Model):
    """Whether somebody saw a doctor in a year: a logistic regression. The prior of the effect is sceptical."""

    unknowns = {"intercept": (), "effect": (), "health": (len(COVARIATES),)}

    def sample_prior(self, key):
        a, b, c = jax.random.split(key, 3)
        health = jax.random.normal(c, (len(COVARIATES),))
        return {"intercept": 2 * jax.random.normal(a), "effect": 0.3 * jax.random.normal(b), "health": health}

    def log_prior(self, x):
        normal = jax.scipy.stats.norm.logpdf
        return normal(x["intercept"], 0, 2) + normal(x["effect"], 0, 0.3) + jnp.sum(normal(x["health"], 0, 1))

    def log_likelihood(self, x, observation, *, inputs):
        score = x["intercept"] + x["effect"] * inputs["free"] + x["health"] @ inputs["health"]
        return jax.nn.log_sigmoid(jnp.where(observation[0] > 0, score, -score))


def main(most: int = 3000, num_particles: int = 256, picture: str = "") -> dict:
    rows = {name: values[:most] for name, values in table("insurance").items()}
    rows["diseases"] /= 10
    inputs = {"free": rows["free_care"], "health": np.column_stack([rows[name] for name in COVARIATES])}
    seen = np.float32(rows["visits"] > 0)
    trace = pfbr.run(Visit(), seen[:, None], inputs=inputs, num_particles=num_particles, key=1)
    mean, sd = trace.mean()["effect"], trace.std()["effect"]
    better = np.asarray(jax.scipy.stats.norm.cdf(mean / sd))  # 256 draws have no tails; a normal with their moments has
    loss = sd * np.exp(-0.5 * (mean / sd) ** 2) / np.sqrt(2 * np.pi) - np.abs(mean) * np.minimum(better, 1 - better)
    stop = next((t + 1 for t in range(most) if loss[t] < BEARABLE), most)
    plain = [difference(seen[:t], inputs["free"][:t]) for t in range(1, most + 1)]
    at, spread = laplace(seen, np.column_stack([np.ones(most), inputs["free"], inputs["health"]]))
    figures = {
        "stop after": stop,
        "probability then, and by two shares": (better[stop - 1], plain[stop - 1]),
        "effect on the log odds": (mean[-1], sd[-1]),
        "effect by a Laplace approximation to all rows": (at[1], spread[1]),
    }
    if picture:
        pictures.experiment(picture, trace.quantile([0.05, 0.5, 0.95])["effect"], better, plain, loss, stop)
    return figures


def difference(seen: np.ndarray, free: np.ndarray) -> float:
    """The probability of a positive difference of two shares, by the normal approximation, health left aside."""
    sizes = np.array([np.sum(free == one) + 2 for one in (0, 1)])
    shares = np.array([np.sum(seen[free == one]) + 1 for one in (0, 1)]) / sizes
    return NormalDist().cdf((shares[1] - shares[0]) / np.sqrt(np.sum(shares * (1 - shares) / sizes)))


def laplace(seen: np.ndarray, design: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mode of the posterior of all rows by Newton's steps, and the standard deviations of its curvature."""
    prior, x = np.array([1 / 4, 1 / 0.09, *np.ones(len(COVARIATES))]), np.zeros(design.shape[1])
    for _ in range(20):
        p = 1 / (1 + np.exp(-design @ x))
        precision = design.T * (p * (1 - p)) @ design + np.diag(prior)
        x = x + np.linalg.solve(precision, design.T @ (seen - p) - prior * x)
    return x, np.sqrt(np.diag(np.linalg.inv(precision)))


if __name__ == "__main__":
    command_line(main)
