"""A forecast as a table: names of parts and components, dates and numbers."""

from typing import ClassVar

import numpy as np
import pytest
from jax import numpy as jnp

import pfbr
from pfbr.cli.forecasts import as_csv, checked_levels
from pfbr.errors import InputError
from pfbr.inference.forecast import Drawn, Forecast


class Named(pfbr.Model):
    unknowns: ClassVar = {"beta": (2,), "sigma": pfbr.positive}

    def sample_prior(self, key):
        return {}

    def log_prior(self, x):
        return 0.0

    def log_likelihood(self, x, observation):
        return 0.0


def test_named_parts_have_a_row_for_each_number():
    drawn = Drawn(jnp.arange(24.0).reshape(1, 8, 3), jnp.ones((1, 8)))
    dated = Forecast(np.array(["2024-01-02"], "datetime64[us]"), drawn, Named())
    lines = as_csv(dated, np.array([0.5]), observes=True).splitlines()
    assert [line.split(",")[2:4] for line in lines[1:]] == [
        ["state", "beta[0]"],
        ["state", "beta[1]"],
        ["state", "sigma"],
        ["observation", "y"],
    ]
    assert lines[1].split(",")[4] == "10.5"
    assert lines[4] == "1,2024-01-02T00:00:00.000000,observation,y,1,0,1"
    assert len(as_csv(dated, np.array([0.5]), observes=False).splitlines()) == 4


@pytest.mark.parametrize("text", ["", "a", "0.5,2", "0.5;0.9"])
def test_quantiles_are_numbers_between_0_and_1(text):
    with pytest.raises(InputError, match="--quantiles"):
        checked_levels(text)
