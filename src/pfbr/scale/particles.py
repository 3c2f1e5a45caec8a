"""One set of particles, a million or more, spread over the devices of a mesh: a particle filter whose weighing, means,
covariances, resampling and evidence go across devices.

Random numbers belong to a particle's place in the whole set, so that the answer does not depend on the number of
devices but for the rounding of sums.
"""

import math
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from jaxtyping import Array

from pfbr.errors import InputError
from pfbr.flow.likelihood import Likelihood
from pfbr.inference.info import Info
from pfbr.inference.method import Method
from pfbr.models.base import Model, StateSpaceModel
from pfbr.particles.particles import Particles
from pfbr.particles.resampling import check_threshold
from pfbr.scale.resampling import resampled
from pfbr.sharding import checked_mesh
from pfbr.typing import Key, Observation

AXIS = "particles"


def _line(mesh: Any) -> Mesh:
    """The devices of a mesh in one axis."""
    known = checked_mesh("all" if mesh is None else mesh)
    assert known is not None
    return Mesh(np.asarray(known.devices).reshape(-1), (AXIS,))


class ShardedSMC(Method):
    """x_m ~ p(x_m | x_{m−1}), w ∝ p(o_m | x_m), with as many particles as all devices hold: `num_particles` is a
    multiple of their number. Resampled once the effective sample size is at most `threshold` of the particles; those of
    a static unknown are then drawn from kernels with the bandwidth of Silverman, shrunk so that mean and covariance
    stay (Liu and West 2001). `mesh`: of JAX's devices; all of them unless told."""

    mesh: Mesh = eqx.field(static=True, default=None, converter=_line)
    threshold: float = eqx.field(static=True, default=0.5, converter=check_threshold)

    def init(self, key: Key, model: Model, num_particles: int) -> Particles:
        devices = self.mesh.size
        if num_particles % devices:
            raise InputError(f"`num_particles` must be a multiple of the {devices} devices; got {num_particles}.")

        def own(shared, places):
            own_key, its_model = shared
            points = jax.vmap(its_model.sample_prior)(_keys(own_key, places))
            return Particles(points, jnp.full(len(places), -math.log(num_particles), points.dtype))

        return self._on_devices(own, (key, model), jnp.arange(num_particles), P(AXIS))

    def update(self, key: Key, model: Model, state: Particles, observation: Observation) -> tuple[Particles, Info]:
        devices, threshold = self.mesh.size, self.threshold
        total = state.points.shape[0]

        def own(shared, part):
            own_key, its_model, seen = shared
            cloud, places = part
            resample_key, move_key = jax.random.split(own_key)

            # Resample
            poor = _ess(cloud.log_weights) <= threshold * total * (1 + 1e-5)
            draw = lambda c: resampled(resample_key, c.points, c.log_weights, AXIS, devices)
            points = jax.lax.cond(poor, draw, lambda c: c.points, cloud)
            even = jnp.full_like(cloud.log_weights, -math.log(total))
            log_weights = jnp.where(poor, even, cloud.log_weights)

            # Propagate
            keys = _keys(move_key, places)
            if isinstance(its_model, StateSpaceModel):
                points = jax.vmap(its_model.sample_transition)(keys, points)
            else:
                points = jnp.where(poor, _from_kernels(keys, points, log_weights, total), points)

            # Reweight
            values = Likelihood(its_model, seen).values(points)
            log_weights = log_weights + values
            gained = _log_sum(log_weights)
            share = lambda which: jax.lax.pmean(jnp.mean(which), AXIS)
            log_weights = log_weights - gained
            info = Info(
                ess=_ess(log_weights),
                log_predictive=gained,
                possible=share(jnp.isfinite(values)),
                undefined=share(jnp.isnan(values)),
            )
            return Particles(points, log_weights), info

        parts = (state, jnp.arange(total))
        return self._on_devices(own, (key, model, jnp.asarray(observation)), parts, (P(AXIS), P()))

    def particles(self, state: Particles) -> Particles:
        return state

    def _on_devices(self, function: Any, shared: Any, each: Any, out: Any) -> Any:
        arrays, rest = eqx.partition(shared, eqx.is_array)
        inner = lambda a, part: function(eqx.combine(a, rest), part)
        return jax.shard_map(inner, mesh=self.mesh, in_specs=(P(), P(AXIS)), out_specs=out, check_vma=False)(
            arrays, each
        )


class Moments(eqx.Module):
    mean: Array  # (d,)
    covariance: Array  # (d, d)


def moments(method: ShardedSMC, particles: Particles) -> Moments:
    """Weighted mean and covariance, summed across devices; every process has them."""
    return _moments(method.mesh, particles)


@eqx.filter_jit
def _moments(mesh: Mesh, particles: Particles) -> Moments:
    placed = jax.lax.with_sharding_constraint(particles, NamedSharding(mesh, P(AXIS)))
    own = lambda part: Moments(*_mean_and_covariance(part.points, part.log_weights))
    return jax.shard_map(own, mesh=mesh, in_specs=P(AXIS), out_specs=P(), check_vma=False)(placed)


def _keys(key: Key, places: Array) -> Key:
    return jax.vmap(lambda place: jax.random.fold_in(key, place))(places)


def _log_sum(log_weights: Array) -> Array:
    """log Σ exp over all devices."""
    most = jax.lax.pmax(jnp.max(log_weights), AXIS)
    most = jnp.where(jnp.isfinite(most), most, 0.0)
    return jnp.log(jax.lax.psum(jnp.sum(jnp.exp(log_weights - most)), AXIS)) + most


def _ess(log_weights: Array) -> Array:
    """Of weights that sum to one."""
    return 1.0 / jax.lax.psum(jnp.sum(jnp.exp(2 * log_weights)), AXIS)


def _mean_and_covariance(points: Array, log_weights: Array) -> tuple[Array, Array]:
    weights = jnp.exp(log_weights)
    mean = jax.lax.psum(weights @ points, AXIS)
    centred = points - mean
    return mean, jax.lax.psum((weights[:, None] * centred).T @ centred, AXIS)


def _from_kernels(keys: Key, points: Array, log_weights: Array, total: int) -> Array:
    """A draw near each point, such that mean and covariance of all stay what they are."""
    dim = points.shape[1]
    mean, covariance = _mean_and_covariance(points, log_weights)
    width = (4.0 / (total * (dim + 2.0))) ** (1.0 / (dim + 4.0))
    scale = jnp.trace(covariance) / dim
    factor = jnp.linalg.cholesky(covariance + 1e-6 * scale * jnp.eye(dim, dtype=points.dtype))
    noise = jax.vmap(lambda key: jax.random.normal(key, (dim,), points.dtype))(keys)
    return mean + math.sqrt(1 - width**2) * (points - mean) + width * noise @ factor.T
