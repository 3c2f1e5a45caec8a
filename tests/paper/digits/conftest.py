"""A few images, and a small store of made-up ones, for all files here."""

import jax
import pytest

from pfbr.paper.digits import Digits, load_digits
from pfbr.paper.digits.rotations import RotatedDigits

KEY = jax.random.key(0)


@pytest.fixture(scope="session")
def few() -> Digits:
    digits = load_digits("train")
    return Digits(digits.images[:150], digits.labels[:150])


@pytest.fixture(scope="session")
def store() -> RotatedDigits:
    """Forty 'images' of three features; the first says, but not surely, whether it is an eight."""
    features = jax.random.normal(KEY, (40, 3))
    labels = jax.random.bernoulli(jax.random.key(1), jax.nn.sigmoid(3 * features[:, 0]))
    return RotatedDigits(features, labels.astype(float), batch=4)
