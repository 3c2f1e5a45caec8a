"""The regression's truth is exact, and so is the measure of how far off a posterior is."""

import numpy as np
import pytest

from pfbr.judging.demo import regression
from pfbr.judging.demo.record import DemoRecord

STDS = (3.0, 0.05, 0.4)
YEARS, VALUES = np.array([1990.0, 2001.0, 1996.0]), np.array([1.2, 2.3, 1.4])


def test_the_exact_posterior_is_that_of_quadrature_over_all_three_unknowns():
    """Three nested sums, on a grid about the posterior's own place."""
    means, covs = regression.exact(YEARS, VALUES, STDS)
    for m in (1, 3):
        root = np.linalg.cholesky(covs[m - 1])
        ticks = np.linspace(-8, 8, 65)
        u = np.stack(np.meshgrid(ticks, ticks, ticks, indexing="ij"), -1).reshape(-1, 3)
        a, b, c = (means[m - 1] + u @ root.T).T
        log_density = -0.5 * ((a / STDS[0]) ** 2 + (b / STDS[1]) ** 2 + (c / STDS[2]) ** 2)
        for year, value in zip(YEARS[:m], VALUES[:m], strict=True):
            log_density += -0.5 * ((value - a - b * year) / np.exp(c)) ** 2 - c
        weight = np.exp(log_density - log_density.max())
        weight /= weight.sum()
        mean = weight @ u
        np.testing.assert_allclose(mean, 0, atol=0.02)  # in the posterior's own standard deviations
        np.testing.assert_allclose((weight[:, None] * (u - mean)).T @ (u - mean), np.eye(3), atol=0.05)


def test_the_error_is_mahalanobis_over_the_root_of_three():
    covs = np.diag([4.0, 1.0, 0.25])[None]
    away = np.array([[2.0, 1.0, 0.5]])
    np.testing.assert_allclose(regression.error(away, np.zeros((1, 3)), covs), [1.0])


@pytest.mark.slow
def test_the_default_method_is_right_and_the_record_says_so(tmp_path):
    settings = regression.RegressionSettings(years=(1980, 1992), num_particles=128)
    regression.run(settings=settings).save(tmp_path)
    record = DemoRecord.load(tmp_path, regression.NAME)
    assert np.sqrt(np.mean(record.arrays["pfbr_error"] ** 2)) < 0.25
    assert record.arrays["pfbr_mean"].shape == (12, 3)
