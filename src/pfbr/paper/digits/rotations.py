"""Tasks that differ by an angle: the first two features of every image are turned together."""

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.models.minibatch import MiniBatch
from pfbr.paper.digits.model import LabelledRows
from pfbr.training.tasks import Family, Task
from pfbr.typing import Key, Scalar

LARGEST_ANGLE = 15.0  # degrees, either way


def rotate(features: Float[Array, "... k"], degrees: Scalar | float) -> Float[Array, "... k"]:
    """Turn the plane of the first two components; the others stay."""
    angle = jnp.deg2rad(degrees)
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    first, second = features[..., 0], features[..., 1]
    turned = jnp.stack([cos * first - sin * second, sin * first + cos * second], axis=-1)
    return jnp.concatenate([turned, features[..., 2:]], axis=-1)


def rows(features: Float[Array, "... k"], labels: Float[Array, "..."]) -> Float[Array, "... r"]:
    """Observations of `LabelledRows`: features, the constant one of the intercept, label."""
    return jnp.concatenate([features, jnp.ones_like(labels)[..., None], labels[..., None]], axis=-1)


class RotatedDigits(Family):
    """Streams of batches of images drawn from a store, all turned by one angle that is uniform in ±`largest_angle`°.

    `zeroed` sets the first two features to zero: what is left to learn without the part that is turned?
    """

    features: Float[Array, "n k"]
    labels: Float[Array, " n"]
    batch: int = eqx.field(static=True, default=32)
    zeroed: bool = eqx.field(static=True, default=False)
    largest_angle: float = eqx.field(static=True, default=LARGEST_ANGLE)

    @property
    def model(self) -> MiniBatch:
        return digit_model(self.features.shape[1], self.batch)

    def sample(self, key: Key, length: int) -> Task:
        angle_key, image_key = jax.random.split(key)
        angle = jax.random.uniform(angle_key, (), minval=-self.largest_angle, maxval=self.largest_angle)
        which = jax.random.randint(image_key, (length, self.batch), 0, self.labels.shape[0])
        features = rotate(self.features[which], angle)
        if self.zeroed:
            features = features.at[..., :2].set(0.0)
        observations = rows(features, self.labels[which])
        nobody_knows = jnp.full((length, self.features.shape[1] + 1), jnp.nan)
        return Task(self.model, observations, nobody_knows)


def digit_model(num_features: int, batch: int) -> MiniBatch:
    """Weights of all features and an intercept, N(0, I) before any image is seen."""
    return MiniBatch(LabelledRows(num_features + 1), batch)


def for_validation(num_images: int) -> np.ndarray:
    """Which training images are kept apart, with all their variants, to validate and to tune on: every tenth."""
    return np.arange(num_images) % 10 == 9
