"""Van drivers killed on roads, month by month: a rate that changes, and seven months ahead with intervals.

python examples/counts.py --picture docs/images/gallery_counts.png
"""

import jax
import numpy as np
import pictures
from common import command_line, table
from jax import numpy as jnp

import pfbr
from pfbr.particles.sample_scores import crps

AHEAD = 7  # months


class Rate(pfbr.StateSpaceModel):
    """x: log of the monthly rate, a random walk of unknown step; a yearly wave of unknown size and phase."""

    dim: int = 1

    def sample_parameters(self, key):
        a, b, c = jax.random.normal(key, (3,))
        return {"log_step": -3 + a, "cosine": 0.3 * b, "sine": 0.3 * c}

    def log_parameters(self, params):
        normal = jax.scipy.stats.norm.logpdf
        return normal(params["log_step"], -3, 1) + normal(params["cosine"], 0, 0.3) + normal(params["sine"], 0, 0.3)

    def sample_prior(self, key):
        return 2 + jax.random.normal(key, (1,))

    def log_prior(self, x):
        return jax.scipy.stats.norm.logpdf(x[0], 2.0)

    def prior_from_normal(self, z):
        return 2 + z

    def transition_from_normal(self, x, z, *, params):
        return x + jnp.exp(params["log_step"]) * z

    def sample_transition(self, key, x, *, params):
        return self.transition_from_normal(x, jax.random.normal(key, (1,)), params=params)

    def _rate(self, x, month, params):
        turn = 2 * jnp.pi * month / 12
        return jnp.exp(x[0] + params["cosine"] * jnp.cos(turn) + params["sine"] * jnp.sin(turn))

    def log_likelihood(self, x, observation, *, inputs, params):
        return jax.scipy.stats.poisson.logpmf(observation[0], self._rate(x, inputs, params))

    def sample_observation(self, key, x, *, inputs, params):
        return jax.random.poisson(key, self._rate(x, inputs, params), (1,)).astype(jnp.float32)


def main(months: int = 192, first: int = 60, num_particles: int = 256, picture: str = "") -> dict:
    dates, y = (column[:months] for column in table("van_drivers").values())
    month, rng = np.arange(months + AHEAD, dtype=np.float32) % 12, np.random.default_rng(0)
    session, bands, scores, inside = pfbr.Session(Rate(), num_particles=num_particles, key=1), [], [], []
    for t in range(months):
        posterior = session.update([y[t]], inputs=month[t])
        bands.append(np.exp(posterior.quantile([0.05, 0.5, 0.95])[:, 0]))
        if first <= t + 1 <= months - AHEAD:
            ahead, truth = session.predict(AHEAD, inputs=month[t + 1 : t + 1 + AHEAD]), y[t + 1 : t + 1 + AHEAD]
            low, high = ahead.observations.quantile([0.05, 0.95])[..., 0]
            years = np.array([y[t + 1 + h - 12 * np.arange(1, 5)] for h in range(AHEAD)])  # the same month before
            rivals = [rng.poisson(years.mean(1), (256, AHEAD)).T, rng.poisson(y[t - 11 : t + 1].mean(), (AHEAD, 256))]
            scores.append([crps(d, truth, axis=1) for d in (ahead.observations.samples[..., 0], *rivals)])
            inside.append((low <= truth) & (truth <= high))
    names = ("CRPS of pfbr", "CRPS of the same month in four years", "CRPS of the last twelve months")
    each = zip(names, np.mean(scores, axis=0), strict=True)
    figures: dict = {name: f"{mean.mean():.3f}; by months ahead {mean.round(2)}" for name, mean in each}
    if picture:
        pictures.counts(picture, dates, y, np.array(bands), session.predict(AHEAD, inputs=month[months:]))
    return figures | {"months in 90 % intervals": np.mean(inside), "parameters": posterior.parameters.mean()}


if __name__ == "__main__":
    command_line(main)
