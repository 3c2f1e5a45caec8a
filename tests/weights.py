"""Networks with weights that are all alive: fresh ones begin with zeros, which would hide mistakes."""

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

from pfbr.inference.architectures import build, choose


def filled(seed, make, scale=1.0):
    """What `make()` makes, every weight drawn by NumPy with the variance of its input's size: nothing to compile."""
    rng = np.random.default_rng(seed)

    def draw(leaf):
        spread = scale / np.sqrt(max(1, leaf.shape[0])) if leaf.ndim > 1 else 0.5 * scale
        return jnp.asarray(spread * rng.normal(size=leaf.shape), leaf.dtype)

    shapes, rest = eqx.partition(eqx.filter_eval_shape(make), lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct))
    return eqx.combine(jax.tree.map(draw, shapes), rest)


def operator_of(seed, name, model, *, scale=1.0, **architecture):
    """An operator by name, with such weights."""
    design = choose(name, model, **architecture)
    return filled(seed, lambda: build(jax.random.key(0), design), scale)
