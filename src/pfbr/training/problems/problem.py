"""A prior, the observations so far and a new one, all of them random, in any dimension."""

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Float, Int

from pfbr.training.problems.term import Kind, Term, draw_term, log_likelihood
from pfbr.typing import Key, Point, Points, Scalar

NORMAL, LUMPS, HEAVY = 0, 1, 2  # shapes of priors
MOST_OLD, MOST_NEW = 3, 2  # terms before the new observation, and in it


class Prior(eqx.Module):
    """N(0, I), a mixture of normals as a Dirichlet process draws it, or Student's t."""

    shape: Int[Array, ""]
    log_weights: Float[Array, " lumps"]
    means: Float[Array, "lumps d"]
    widths: Float[Array, " lumps"]
    freedom: Scalar

    def log_density(self, x: Point) -> Scalar:
        d = x.shape[0]
        off = jnp.sum((x - self.means) ** 2, axis=1) / self.widths**2
        lumps = jax.nn.logsumexp(self.log_weights - 0.5 * off - d * jnp.log(self.widths))
        square = jnp.sum(x**2)
        heavy = -0.5 * (self.freedom + d) * jnp.log1p(square / self.freedom)
        return jnp.stack([-0.5 * square, lumps, heavy])[self.shape]

    def sample(self, key: Key, num: int) -> Points:
        normal_key, lump_key, heavy_key = jax.random.split(key, 3)
        d = self.means.shape[1]
        normal = jax.random.normal(normal_key, (num, d))
        which = jax.random.categorical(lump_key, self.log_weights, shape=(num,))
        lumps = self.means[which] + self.widths[which, None] * normal
        chi = 2 * jax.random.gamma(heavy_key, 0.5 * self.freedom, (num, 1))
        return jnp.stack([normal, lumps, normal * jnp.sqrt(self.freedom / chi)])[self.shape]


def draw_prior(key: Key, d: int) -> Prior:
    keys = jax.random.split(key, 5)
    sticks = jax.random.beta(keys[0], 1.0, 1.5, (4,)).at[3].set(1.0)
    left = jnp.concatenate([jnp.ones(1), jnp.cumprod(1 - sticks[:3])])
    return Prior(
        jax.random.choice(keys[1], jnp.array([NORMAL, NORMAL, LUMPS, HEAVY])),
        jnp.log(jnp.maximum(sticks * left, 1e-6)),
        1.2 * jax.random.normal(keys[2], (4, d)),
        jnp.exp(jax.random.uniform(keys[3], (4,), minval=jnp.log(0.3), maxval=jnp.log(1.2))),
        3 + 7 * jax.random.uniform(keys[4]),
    )


class Problem(eqx.Module):
    """The density before an observation, prior · old terms, and the observation: one or two terms."""

    prior: Prior
    old: Term
    new: Term

    def log_before(self, kinds: tuple[Kind, ...], x: Point) -> Scalar:
        return self.prior.log_density(x) + log_likelihood(kinds, self.old, x)

    def log_new(self, kinds: tuple[Kind, ...], x: Point) -> Scalar:
        return log_likelihood(kinds, self.new, x)

    def log_until(self, kinds: tuple[Kind, ...], x: Point, share: Scalar) -> Scalar:
        """With this share of the new observation."""
        powers = jnp.concatenate([jnp.ones(MOST_OLD, x.dtype), jnp.full(MOST_NEW, share, x.dtype)])
        terms = jax.tree.map(lambda old, new: jnp.concatenate([old, new]), self.old, self.new)
        return self.prior.log_density(x) + log_likelihood(kinds, terms, x, powers)


def draw_problem(key: Key, d: int, kinds: Array, *, old_kinds: Array | None = None) -> Problem:
    """`kinds` are the numbers of those that the new observation may have; the old ones may be of others."""
    keys = jax.random.split(key, 5)
    prior = draw_prior(keys[0], d)
    truth = prior.sample(keys[1], 1)[0]

    def terms(key, kinds, most, least):
        count_key, *each = jax.random.split(key, most + 1)
        on = jnp.arange(most) < jax.random.randint(count_key, (), least, most + 1)
        return jax.vmap(draw_term, (0, None, None, 0))(jnp.stack(each), kinds, truth, on.astype(truth.dtype))

    old = terms(keys[2], kinds if old_kinds is None else old_kinds, MOST_OLD, 0)
    return Problem(prior, old, terms(keys[3], kinds, MOST_NEW, 1))
