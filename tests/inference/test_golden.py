"""The numbers of before: every shipped operator and one update of each method, with explicit keys.

A move or a merge that changes a number is seen here. Whoever changes one on purpose writes the file anew
(`python -m tests.inference.golden`) and says why in the change.
"""

import numpy as np
import pytest

from tests.inference.golden import CASES, FILE


@pytest.fixture(scope="module")
def before():
    with np.load(FILE) as stored:
        return {name: stored[name] for name in stored.files}


@pytest.mark.parametrize("name", CASES)
def test_nothing_has_changed(name, before):
    points, log_weights, log_density = CASES[name]()
    # float32, other fusions of the same operations; what moves by Markov chains could flip a single decision
    np.testing.assert_allclose(points, before[f"{name}/points"], rtol=2e-3, atol=2e-3)
    np.testing.assert_allclose(log_weights, before[f"{name}/log_weights"], rtol=2e-3, atol=5e-3)
    if f"{name}/log_density" in before:
        np.testing.assert_allclose(log_density, before[f"{name}/log_density"], rtol=2e-3, atol=2e-2)
