"""The digits of the logistic-regression experiments: what is trained on, what is tuned on, what is tested on.

Three sets of original images that never mix: nine tenths of the official training images, one tenth of them, and the
official test images. All their deformed variants stay on their side.
"""

import jax
import numpy as np
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.errors import InputError
from pfbr.paper.digits import PreparedDigits, load_digits, shipped_reduction
from pfbr.paper.digits.deformation import deform
from pfbr.paper.digits.rotations import LARGEST_ANGLE, RotatedDigits, for_validation, rotate, rows
from pfbr.typing import Key

TEST_NUMBERS = 1_000_000  # numbers of the test images, far from those of the training images
FRESH_VARIANT = 1000  # variants from here on are for looking at a posterior, those below for streams
EMBEDDED_VARIANTS = 12  # of each image, where there is no prepared stream: 140,000 images in memory


def stores(
    stream: PreparedDigits | None, *, batch: int = 32, zeroed: bool = False
) -> tuple[RotatedDigits, RotatedDigits]:
    """Tasks to train on and tasks to validate on: from a prepared stream, or made now from the embedded images."""
    digits = load_digits("train")
    apart = for_validation(len(digits.labels))
    num_variants = EMBEDDED_VARIANTS if stream is None else stream.num_variants
    reduction = shipped_reduction() if stream is None else None

    def features(variant: int) -> np.ndarray:
        if stream is not None:
            return stream.features(variant)
        assert reduction is not None
        return reduction.features(deform(digits.images, np.arange(len(digits.images)), variant))

    kept = int(np.sum(~apart))
    size = shipped_reduction().scale.shape[0] if stream is None else stream.reduction.scale.shape[0]
    train = np.empty((num_variants, kept, size), np.float32)
    validation = np.empty((num_variants, len(apart) - kept, size), np.float32)
    for variant in range(num_variants):
        both = features(variant)
        train[variant], validation[variant] = both[~apart], both[apart]

    def store(array: np.ndarray, labels: np.ndarray) -> RotatedDigits:
        flat = jnp.asarray(array.reshape(-1, size))
        return RotatedDigits(flat, jnp.asarray(np.tile(labels, num_variants)), batch, zeroed)

    return store(train, digits.labels[~apart]), store(validation, digits.labels[apart])


def unseen_angles(num_tasks: int) -> np.ndarray:
    """Angles of the test tasks, evenly over the range; training draws its own from a continuum and meets none twice."""
    return LARGEST_ANGLE * ((2 * np.arange(num_tasks) + 1) / num_tasks - 1)


def unseen_images(variant: int) -> tuple[np.ndarray, np.ndarray]:
    """Features and labels of the 1,932 official test images in one variant; 0: as they are."""
    digits = load_digits("test")
    images = deform(digits.images, TEST_NUMBERS + np.arange(len(digits.images)), variant)
    return shipped_reduction().features(images), digits.labels


def unseen_streams(
    seed: int, num_tasks: int, length: int, *, batch: int = 32, deformed: bool = True, zeroed: bool = False
) -> tuple[Float[Array, "s t l r"], Float[Array, "s f r"]]:
    """Streams of test images, none twice in a stream, each task with its own angle and variants; and for each task all
    test images in another variant, to look at a posterior with."""
    available = len(load_digits("test").labels)
    if length * batch > available:
        raise InputError(f"{length} batches of {batch} need {length * batch} test images; there are {available}.")
    streams: list[Array] = []
    fresh: list[Array] = []
    for task, angle in enumerate(unseen_angles(num_tasks)):
        order = np.random.default_rng([seed, task]).permutation(available)[: length * batch]
        for variant, into, which in (
            (1 + task, streams, order.reshape(length, batch)),
            (FRESH_VARIANT + task, fresh, np.arange(available)),
        ):
            features, labels = unseen_images(variant if deformed else 0)
            turned = rotate(jnp.asarray(features[which]), angle)
            into.append(rows(turned.at[..., :2].set(0.0) if zeroed else turned, jnp.asarray(labels[which])))
    return jnp.stack(streams), jnp.stack(fresh)


def tuning_streams(key: Key, store: RotatedDigits, num_tasks: int, length: int) -> Float[Array, "s t l r"]:
    """Streams of validation images at angles of their own."""
    return jnp.stack([store.sample(k, length).observations for k in jax.random.split(key, num_tasks)])
