"""Linear regression and autoregression with unknown noise, vague priors: exact given the noise, a grid over that."""

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

from benchmarks.static.densities import log_half_normal, normal, sample_log_half_normal
from benchmarks.static.problem import Posterior, Problem
from pfbr.models.base import Model

GRID = 40_001  # values of log sigma


class LinearRegression(Model):
    """y ~ N(inputs · beta, sigma), beta ~ N(0, scales), sigma half-normal(noise_scale); x = (beta, log sigma)."""

    scales: np.ndarray
    noise_scale: float
    dim: int = eqx.field(static=True)

    def sample_prior(self, key):
        k1, k2 = jax.random.split(key)
        beta = self.scales * jax.random.normal(k1, self.scales.shape)
        return jnp.append(beta, sample_log_half_normal(k2, self.noise_scale))

    def log_prior(self, x):
        return jnp.sum(normal(x[:-1], 0.0, self.scales)) + log_half_normal(x[-1], self.noise_scale)

    def log_likelihood(self, x, observation, *, inputs):
        return normal(observation[0], inputs @ x[:-1], jnp.exp(x[-1]))


def linear(name, seed, design, y, scales, noise_scale, unknowns=None) -> Problem:
    scales = np.asarray(scales, float)
    names = [*(unknowns or [f"b{i}" for i in range(len(scales))]), "log_sigma"]
    model = LinearRegression(scales, noise_scale, len(names))
    design, y = np.asarray(design, np.float32), np.asarray(y, np.float32)
    known = lambda stage: posterior(design[:stage].astype(float), y[:stage].astype(float), scales, noise_scale)
    return Problem(name, seed, model, names, y[:, None], design, known)


def posterior(design: np.ndarray, y: np.ndarray, scales: np.ndarray, noise_scale: float) -> Posterior:
    """In the basis of singular vectors the coefficients, in units of their prior, are independent given sigma."""
    u, s, vt = np.linalg.svd(design * scales, full_matrices=True)
    rank, d = len(s), len(scales)
    projected = u.T @ y
    grid = np.linspace(np.log(noise_scale) - 16, np.log(noise_scale) + 2.5, GRID)
    padded = np.zeros(len(y))  # marginal variance of each projected observation: sigma² + s²
    padded[:rank] = s**2
    logw = np.empty(GRID)
    for part in np.array_split(np.arange(GRID), 40):
        variance = np.exp(2 * grid[part])[:, None] + padded
        logw[part] = -0.5 * np.sum(np.log(2 * np.pi * variance) + projected**2 / variance, axis=1)
    logw += 0.5 * np.log(2 / np.pi) - np.log(noise_scale) - 0.5 * (np.exp(grid) / noise_scale) ** 2 + grid
    kept = logw > logw.max() - 40
    weights, log_sigma = np.exp(logw[kept] - logw.max()), grid[kept]
    evidence = logw.max() + np.log(weights.sum() * (grid[1] - grid[0]))
    weights /= weights.sum()
    squares, pull = np.zeros(d), np.zeros(d)
    squares[:rank], pull[:rank] = s**2, s * projected[:rank]
    sigma2 = np.exp(2 * log_sigma)[:, None]
    variances = 1 / (1 + squares / sigma2)
    means = variances * pull / sigma2
    mean, mean_log = weights @ means, weights @ log_sigma
    cov = (weights[:, None] * (means - mean)).T @ (means - mean) + np.diag(weights @ variances)
    back = scales[:, None] * vt.T
    cross = back @ ((weights * (log_sigma - mean_log)) @ (means - mean))
    corner = np.array([[weights @ (log_sigma - mean_log) ** 2]])
    full = np.block([[back @ cov @ back.T, cross[:, None]], [cross[None], corner]])
    return Posterior(np.append(back @ mean, mean_log), full, evidence, 0.0)


def yearly(seed: int) -> Problem:
    """A line through yearly values, neither centred nor scaled: intercept and slope correlated by −0.99999."""
    rng = np.random.default_rng(seed)
    years = rng.permutation(np.arange(1950.0, 2012.0))
    y = 9.3 + 0.018 * (years - 1981) + 1.1 * rng.standard_normal(len(years))
    design = np.column_stack([np.ones_like(years), years])
    return linear("yearly-3", seed, design, y, [100.0, 0.05], 20.0, ["intercept", "year"])


def longley(seed: int) -> Problem:
    """Longley's economic data (statsmodels; 16 rows, six covariates and an intercept, nearly collinear). d = 8."""
    data = statsmodels_data("longley").load_pandas()
    order = np.random.default_rng(seed).permutation(len(data.endog))
    design = np.column_stack([np.ones(16), data.exog.to_numpy()])[order]
    y = data.endog.to_numpy()[order] / 1000.0
    return linear("longley-8", seed, design, y, 50.0 / np.abs(design).mean(0), 10.0, ["intercept", *data.exog.columns])


def sunspots(seed: int) -> Problem:
    """Autoregression of order five on yearly sunspots (statsmodels; 304 rows), with an intercept. d = 7."""
    series = statsmodels_data("sunspots").load_pandas().data["SUNACTIVITY"].to_numpy()
    design = np.column_stack([np.ones(len(series) - 5), *[series[4 - k : -1 - k] for k in range(5)]])
    return linear("sunspots-ar5", seed, design, series[5:], [50.0, 2, 2, 2, 2, 2], 50.0)


def diabetes(seed: int) -> Problem:
    """Progression of diabetes (scikit-learn, raw units; 442 rows), six covariates and an intercept. d = 8."""
    x, y = diabetes_data(seed)
    design = np.column_stack([np.ones(len(y)), x[:, [0, 1, 2, 3, 8, 9]]])
    names = ["intercept", "age", "sex", "bmi", "bp", "s5", "s6"]
    return linear("diabetes-8", seed, design, y, 300.0 / np.abs(design).mean(0), 200.0, names)


def diabetes_wide(seed: int) -> Problem:
    """The same with all ten covariates and fourteen products of them: d = 26 with intercept and noise."""
    x, y = diabetes_data(seed)
    second = [(2, 3), (2, 8), (3, 8), (0, 2), (0, 3), (0, 8), (1, 2), (1, 3), (1, 8), (2, 9), (3, 9), (4, 5), (4, 8)]
    products = [x[:, i] * x[:, j] for i, j in [*second, (6, 8)]]
    design = np.column_stack([np.ones(len(y)), x, *products])
    return linear("diabetes-26", seed, design, y, 300.0 / np.abs(design).mean(0), 200.0)


def diabetes_data(seed: int) -> tuple[np.ndarray, np.ndarray]:
    try:
        from sklearn.datasets import load_diabetes
    except ImportError:
        raise SystemExit("the diabetes data come with scikit-learn: pip install scikit-learn") from None
    x, y = load_diabetes(return_X_y=True, scaled=False)
    order = np.random.default_rng(seed).permutation(len(y))
    return x[order], y[order]


def statsmodels_data(name: str):
    try:
        import statsmodels.api as sm
    except ImportError:
        raise SystemExit(f"the {name} data come with statsmodels: pip install statsmodels") from None
    return getattr(sm.datasets, name)
