"""Volatility of oil prices, its own parameters unknown too, with a value at risk for every next day.

python examples/volatility.py --picture docs/images/gallery_volatility.png
"""

from statistics import NormalDist

import jax
import numpy as np
import pictures
from common import command_line, table
from jax import numpy as jnp

import pfbr

LEVELS = np.array([0.01, 0.05])  # of the value at risk
NORMALS = np.array([NormalDist().inv_cdf((i + 0.5) / 400) for i in range(400)])


class Volatility(pfbr.StateSpaceModel):
    """x: log variance of a day's return, in percent²; it drifts back to its level. All three numbers are unknown."""

    dim: int = 1

    def sample_parameters(self, key):
        a, b, c = jax.random.normal(key, (3,))
        return {"level": 1 + a, "persistence": 3.5 + 0.7 * b, "noise": -1.6 + 0.5 * c}  # logit and log scale

    def log_parameters(self, params):
        log_p, (a, b, c) = jax.scipy.stats.norm.logpdf, (params[name] for name in ("level", "persistence", "noise"))
        return log_p(a, 1, 1) + log_p(b, 3.5, 0.7) + log_p(c, -1.6, 0.5)

    def _scale(self, params):
        return jnp.exp(params["noise"]) / jnp.sqrt(1 - jax.nn.sigmoid(params["persistence"]) ** 2)

    def log_prior(self, x, *, params):
        return jax.scipy.stats.norm.logpdf(x[0], params["level"], self._scale(params))

    def prior_from_normal(self, z, *, params):
        return params["level"] + self._scale(params) * z

    def sample_prior(self, key, *, params):
        return self.prior_from_normal(jax.random.normal(key, (1,)), params=params)

    def transition_from_normal(self, x, z, *, params):
        back = jax.nn.sigmoid(params["persistence"]) * (x - params["level"])
        return params["level"] + back + jnp.exp(params["noise"]) * z

    def sample_transition(self, key, x, *, params):
        return self.transition_from_normal(x, jax.random.normal(key, (1,)), params=params)

    def log_likelihood(self, x, observation):
        return jax.scipy.stats.norm.logpdf(observation[0], 0.0, jnp.exp(x[0] / 2))


def main(days: int = 500, burn_in: int = 125, num_particles: int = 128, picture: str = "") -> dict:
    dates, dollars = (column[: days + 1] for column in table("oil").values())
    y = 100 * np.diff(np.log(dollars))
    session, risk, spread = pfbr.Session(Volatility(), num_particles=num_particles, key=1), [], []
    for value in y:
        posterior = session.update([value])
        tomorrow = np.exp(session.predict(1).states.samples[0, :, 0] / 2)  # standard deviations that are possible
        risk.append(np.quantile(tomorrow[:, None] * NORMALS, LEVELS))
        spread.append(np.quantile(tomorrow, [0.05, 0.5, 0.95]))
    risk, spread = ([np.full(len(said[0]), np.nan), *said[:-1]] for said in (risk, spread))  # as of the evening before
    weights = 0.94 ** np.arange(days)[::-1]  # RiskMetrics: an exponential average of squares
    recent = np.array([np.sqrt(weights[days - t :] @ y[:t] ** 2 / weights[days - t :].sum()) for t in range(1, days)])
    smoothed = np.append(np.nan, recent)[:, None] * [NormalDist().inv_cdf(level) for level in LEVELS]
    past = [np.quantile(y[max(0, t - 250) : t], LEVELS) if t else [np.nan] * 2 for t in range(days)]
    figures: dict = {"parameters": posterior.parameters.mean(), "log evidence": session.log_evidence}
    for name, quantiles in {"pfbr": risk, "RiskMetrics": smoothed, "last 250 days": past}.items():
        under = y[burn_in:, None] - np.array(quantiles)[burn_in:]
        figures[name] = {"share below": np.mean(under < 0, 0), "loss": np.mean(under * (LEVELS - (under < 0)), 0)}
    if picture:
        pictures.volatility(picture, dates[1:], y, np.array(risk), np.array(spread))
    return figures


if __name__ == "__main__":
    command_line(main)
