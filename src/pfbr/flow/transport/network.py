"""What is learned: a small network that looks at a whole cloud and says how its density is to be continued."""

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.typing import Key, Scalar

WIDTHS = (0.1, 0.25, 0.6, 1.5, 4.0)  # of kernels, in standard deviations of the direction in which most is left
TOLD = 9 + len(WIDTHS)
DEFAULTS = (*(0.0 for _ in WIDTHS), 0.0, 2.0, 1.0, 0.0)
SHARPEST = 4.0  # power of the errors by which widths are chosen


class Continued(eqx.Module):
    """How a density is continued from particles to the points between them, and how far to look."""

    y_width: Scalar  # of the kernels along the lines
    z_width: Scalar  # and across
    share: Scalar  # of what a Gaussian leaves that is believed
    tangent: Scalar  # of a step across the lines, the share along the slopes at its beginning
    reach: Scalar  # of the lines, over that of a Gaussian posterior


class LeftOut(eqx.Module):
    """How particles left out are continued from the others, for each width of the kernels."""

    errors: Float[Array, " widths"]  # over those of no continuation at all
    worth: Float[Array, " widths"]  # the share of it that comes closest to the truth, 0 to 1


class Network(eqx.Module):
    """Two layers, from numbers of the whole cloud that do not depend on its frame, for any number of unknowns.

    Before training it takes the width with which particles left out are best continued, and believes most of it.
    """

    first: Float[Array, "i h"]
    first_bias: Float[Array, " h"]
    second: Float[Array, "h h"]
    second_bias: Float[Array, " h"]
    last: Float[Array, "h k"]
    last_bias: Float[Array, " k"]

    def __call__(self, told: Float[Array, " i"], left_out: LeftOut) -> Continued:
        h = jnp.tanh(told @ self.first + self.first_bias)
        h = jnp.tanh(h @ self.second + self.second_bias)
        said = h @ self.last + self.last_bias
        choice = jax.nn.softmax(said[: len(WIDTHS)] - SHARPEST * jnp.log(left_out.errors + 1e-3))
        across, share, tangent, reach = said[len(WIDTHS) :]
        width = jnp.exp(choice @ jnp.log(jnp.asarray(WIDTHS, said.dtype)))
        bounded = lambda x: jnp.exp(2 * jnp.tanh(x / 2))
        believed = 1.13 * jax.nn.sigmoid(share) * (choice @ left_out.worth)
        return Continued(width, width * bounded(across), believed, jax.nn.sigmoid(tangent), bounded(reach))


def untrained(key: Key, *, width: int = 32) -> Network:
    """It says `DEFAULTS`, whatever the cloud."""
    keys = jax.random.split(key, 2)
    return Network(
        jax.random.normal(keys[0], (TOLD, width)) / TOLD**0.5,
        jnp.zeros(width),
        jax.random.normal(keys[1], (width, width)) / width**0.5,
        jnp.zeros(width),
        jnp.zeros((width, len(DEFAULTS))),
        jnp.asarray(DEFAULTS),
    )
