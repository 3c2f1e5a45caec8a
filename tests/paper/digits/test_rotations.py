"""Tasks that differ by an angle, and nothing else."""

import dataclasses

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

from pfbr.paper.digits.rotations import for_validation, rotate

KEY = jax.random.key(0)


@eqx.filter_jit
def sample(store):
    return store.sample(KEY, 6)


def test_a_rotation_turns_the_first_two_features():
    features = jnp.array([[1.0, 0.0, 5.0], [0.0, 2.0, -1.0]])
    turn = jax.jit(rotate)
    assert np.allclose(turn(features, 90.0), [[0, 1, 5], [-2, 0, -1]], atol=1e-6)
    assert np.allclose(turn(turn(features, 10.0), -10.0), features, atol=1e-6)


def test_a_task_is_one_angle_the_images_of_the_store_and_an_intercept(store):
    observations = np.asarray(sample(store).observations)
    features, labels = np.asarray(store.features), np.asarray(store.labels)
    assert observations.shape == (6, 4, 5)
    assert np.all(observations[..., 3] == 1)
    # turned back by the same angle for all, every row is an image of the store with its own label
    length = np.linalg.norm(observations[..., :2], axis=-1)
    near = np.abs(np.linalg.norm(features[:, :2], axis=-1) - length[..., None]).argmin(-1)
    assert np.allclose(features[near][..., 2], observations[..., 2], atol=1e-5)
    assert np.array_equal(labels[near], observations[..., 4])
    first = features[near]
    turned = np.angle((observations[..., 0] + 1j * observations[..., 1]) / (first[..., 0] + 1j * first[..., 1]))
    assert np.ptp(turned) < 1e-4
    assert abs(np.rad2deg(turned[0, 0])) <= 15.0
    zeroed = np.asarray(sample(dataclasses.replace(store, zeroed=True)).observations)
    assert np.all(zeroed[..., :2] == 0)
    assert np.array_equal(zeroed[..., 2:], observations[..., 2:])
    upright = np.asarray(sample(dataclasses.replace(store, largest_angle=0.0)).observations)
    assert np.allclose(upright[..., 0], features[near][..., 0], atol=1e-5)


def test_every_tenth_image_is_kept_apart():
    assert for_validation(30).sum() == 3
