"""Tasks that differ by an angle, and nothing else."""

import dataclasses

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.paper.digits.rotations import for_validation, rotate

KEY = jax.random.key(0)


def test_a_rotation_turns_the_first_two_features():
    features = jnp.array([[1.0, 0.0, 5.0], [0.0, 2.0, -1.0]])
    assert np.allclose(rotate(features, 90.0), [[0, 1, 5], [-2, 0, -1]], atol=1e-6)
    assert np.allclose(rotate(rotate(features, 10.0), -10.0), features, atol=1e-6)


def test_a_task_is_one_angle_the_images_of_the_store_and_an_intercept(store):
    observations = store.sample(KEY, 6).observations
    assert observations.shape == (6, 4, 5)
    assert np.all(observations[..., 3] == 1)
    # turned back by the same angle for all, every row is an image of the store with its own label
    length = jnp.linalg.norm(observations[..., :2], axis=-1)
    near = jnp.abs(jnp.linalg.norm(store.features[:, :2], axis=-1) - length[..., None]).argmin(-1)
    assert np.allclose(store.features[near][..., 2], observations[..., 2], atol=1e-5)
    assert np.array_equal(store.labels[near], observations[..., 4])
    first = store.features[near]
    turned = jnp.angle((observations[..., 0] + 1j * observations[..., 1]) / (first[..., 0] + 1j * first[..., 1]))
    assert np.ptp(turned) < 1e-4
    assert abs(float(jnp.rad2deg(turned[0, 0]))) <= 15.0
    zeroed = dataclasses.replace(store, zeroed=True).sample(KEY, 6).observations
    assert np.all(zeroed[..., :2] == 0)
    assert np.array_equal(zeroed[..., 2:], observations[..., 2:])
    upright = dataclasses.replace(store, largest_angle=0.0).sample(KEY, 6).observations
    assert np.allclose(upright[..., 0], store.features[near][..., 0], atol=1e-5)


def test_every_tenth_image_is_kept_apart():
    assert for_validation(30).sum() == 3
