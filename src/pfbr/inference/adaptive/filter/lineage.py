"""Which particle of an earlier cloud each particle comes from, and what that says about the error of the mean.

Two earlier clouds are kept, the older 9 to 16 reports back, the younger at most 8, with the reports since: from them
the last reports can be replayed (second_look.py). Particles that come from one earlier particle share its luck, others
do not. So the Monte Carlo variance of the mean is Σ over earlier particles e of (Σ_{i from e} w_i (x_i − mean))² (Chan
and Lai 2013; Lee and Whiteley 2018), with a lag that is bounded (Olsson and Douc 2019): all O(n) a report.
"""

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array

from pfbr.inference.adaptive.filter.cloud import Cloud
from pfbr.particles.particles import normalise as normalised
from pfbr.particles.summation import CompensatedSum
from pfbr.particles.whitening import Whitening, whitening_of

PERIOD = 8  # reports between two clouds that are kept
JUDGES = 1024  # particles that tell the scale of errors, at most
FEWEST = 1.5  # families, effectively, that tell a variance
GROUPS = 512  # of earlier particles, at most: as many independent parts tell a variance to a sixteenth


class Checkpoint(eqx.Module):
    """A cloud as it was, and which of its particles each of today's comes from."""

    cloud: Cloud
    log_evidence: CompensatedSum  # up to then
    origin: Array  # (n,) int, in ascending order while particles are only resampled
    age: Array  # reports since
    is_prior: Array


class Reports(eqx.Module):
    """The last 2 · PERIOD reports, oldest first."""

    observations: Array
    dts: Array
    conditions: object
    log_predictives: Array


class Lineage(eqx.Module):
    older: Checkpoint
    younger: Checkpoint
    reports: Reports
    count: Array  # reports so far

    def opened(self, cloud: Cloud, log_evidence: CompensatedSum) -> "Lineage":
        """Before a report: when the younger cloud has come of age, it becomes the older one."""
        now = _checkpoint(cloud, log_evidence, is_prior=False)
        due = self.younger.age >= PERIOD
        clouds = jax.lax.cond(due, lambda: (self.younger, now), lambda: (self.older, self.younger))
        return eqx.tree_at(lambda s: (s.older, s.younger), self, clouds)

    def after(
        self, parent: Array, observation, dt, conditions, log_predictive, renewed: Array | bool = False
    ) -> "Lineage":
        """After a report whose particles come from those before it as `parent` says. Renewed paths owe nothing to
        others."""
        own = jnp.arange(parent.shape[0])

        def add(kept, new):
            return jnp.concatenate([kept[1:], jnp.asarray(new, kept.dtype)[None]])

        def grown(point: Checkpoint) -> Checkpoint:
            origin = jnp.where(renewed, own, point.origin[parent])
            return eqx.tree_at(lambda p: (p.origin, p.age), point, (origin, point.age + 1))

        reports = jax.tree.map(add, self.reports, Reports(observation, dt, conditions, log_predictive))
        return Lineage(grown(self.older), grown(self.younger), reports, self.count + 1)

    def restarted_where(self, new: Array, cloud: Cloud, log_evidence: CompensatedSum) -> "Lineage":
        """Where the cloud is new, it owes nothing to those before."""
        now = _checkpoint(cloud, log_evidence, is_prior=False)
        clouds = jax.lax.cond(new, lambda: (now, now), lambda: (self.older, self.younger))
        return eqx.tree_at(lambda s: (s.older, s.younger), self, clouds)

    def error(self, cloud: Cloud, renewed: Array | bool = False) -> Array:
        """Of the mean of a cloud whose particles come from those before the report as `cloud.parent` says, Mahalanobis
        over √d. Where paths were renewed, only copies made by the last resampling share their luck."""
        stride = max(1, cloud.points.shape[0] // JUDGES)
        some = jnp.exp(normalised(cloud.log_weights[::stride]))
        whitening = whitening_of(cloud.points[::stride], some, shrink=False)
        weights = cloud.weights[:, None]
        parts = jnp.concatenate([weights * (cloud.points - cloud.mean), weights], axis=1)
        told = spread_of_sums(parts, jnp.where(renewed, cloud.family, self.older.origin[cloud.parent]), whitening)
        # few families in the end: a model that forgets fast may be fine all the same, which the younger cloud tells
        return jax.lax.cond(
            jnp.isfinite(told),
            lambda: told,
            lambda: spread_of_sums(parts, self.younger.origin[cloud.parent], whitening),
        )


def spread_of_sums(parts: Array, origin: Array, whitening: Whitening) -> Array:
    """The root of Σ_groups |whitened sum of parts|² over their dimension; infinite where nearly all come from one. The
    last column of the parts is their weight."""
    n, groups = parts.shape[0], min(parts.shape[0], GROUPS)
    sums = jax.ops.segment_sum(parts, origin if n == groups else origin * groups // n, groups)
    z = sums[:, :-1] @ whitening.inverse_scale.T
    effective = 1 / jnp.sum(sums[:, -1] ** 2)
    # the mean is that of the same few groups: as with any sample variance, one degree of freedom is lost
    error = jnp.sqrt(jnp.sum(z**2) / z.shape[1] / jnp.maximum(1 - 1 / effective, 0.3))
    return jnp.where(effective < FEWEST, jnp.inf, error)


def first_lineage(cloud: Cloud, observation, conditions) -> Lineage:
    def room(example):
        example = jnp.asarray(example)
        return jnp.zeros((2 * PERIOD, *example.shape), example.dtype)

    zero = jnp.zeros((), cloud.points.dtype)
    prior = _checkpoint(cloud, CompensatedSum.zero(), is_prior=True)
    reports = jax.tree.map(room, Reports(observation, zero, conditions, zero))
    return Lineage(prior, prior, reports, jnp.zeros((), jnp.int32))


def _checkpoint(cloud: Cloud, log_evidence: CompensatedSum, *, is_prior: bool) -> Checkpoint:
    return Checkpoint(
        cloud, log_evidence, jnp.arange(cloud.points.shape[0]), jnp.zeros((), jnp.int32), jnp.array(is_prior)
    )
