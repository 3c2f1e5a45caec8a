"""Parameters beside a state: an outer cloud of parameters, each with a small particle filter of its own.

SMC squared (Chopin, Jacob and Papaspiliopoulos 2013). A filter's estimate of p(y | past, θ) is the row's likelihood of
θ. While the outer effective sample size is enough, parameters are weighed; below, they are resampled and moved by
Metropolis steps, each judged by a fresh filter over all rows kept. The filters' noise cancels out: the law of θ is
exact for any number of inner particles. Once rows have been dropped the past cannot be run again, and parameters are
drawn from kernels shrunk to their mean instead (Liu and West 2001): `info.exact` then says so.
"""

from typing import Any

import equinox as eqx
import jax
from jax import numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from pfbr.inference.history import History, empty_history
from pfbr.inference.info import Info, Move
from pfbr.inference.method import Method
from pfbr.models.base import Model, has_parameters
from pfbr.models.conditions import Conditions, bind, conditions_of, unbound
from pfbr.particles.particles import Particles, ess, normalise
from pfbr.particles.resampling import systematic
from pfbr.particles.whitening import whitening_of
from pfbr.typing import Key, Observation, PerParticle, Points, Scalar

SHRINK = 0.1  # h of the kernels that stand in for moves once rows have been dropped


class NestedState(eqx.Module):
    """Parameters (N, p) flat, their filters' states (N, M, d), weights, log likelihoods of all rows, and the rows."""

    parameters: Points
    states: Float[Array, "n m d"]
    log_weights: PerParticle
    log_past: PerParticle
    history: History
    dropped: Array  # whether rows have been dropped


class Nested(Method):
    """`inner` particles for each of the outer ones; `moves` Metropolis steps of a rejuvenation."""

    inner: int = eqx.field(static=True, default=64)
    moves: int = eqx.field(static=True, default=5)
    threshold: float = eqx.field(static=True, default=0.5)
    history: int = eqx.field(static=True, default=4096)

    def init(self, key: Key, model: Model, num_particles: int) -> NestedState:
        parameters_key, state_key = jax.random.split(key)
        sample = unbound(model).sample_parameters  # type: ignore[attr-defined]
        drawn = jax.vmap(lambda k: ravel_pytree(sample(k))[0])(jax.random.split(parameters_key, num_particles))
        keys = jax.random.split(state_key, num_particles)
        states = jax.vmap(lambda k, theta: self._first(k, model, theta))(keys, drawn)
        zero = jnp.zeros(num_particles, drawn.dtype)
        return NestedState(
            drawn,
            states,
            zero - jnp.log(float(num_particles)),
            zero,
            empty_history(_plain(model), max(self.history, 1)),
            jnp.asarray(self.history == 0),
        )

    def update(self, key: Key, model: Model, state: NestedState, observation: Observation) -> tuple[NestedState, Info]:
        n = state.parameters.shape[0]
        filter_key, renew_key = jax.random.split(key)
        full = state.history.count >= state.history.capacity
        history = jax.lax.cond(full, lambda: state.history, lambda: state.history.append(_plain(model), observation))
        conditions = conditions_of(model)

        def one(k, theta, states):
            return self._inner_step(k, model, theta, states, conditions, observation)

        states, gained = jax.vmap(one)(jax.random.split(filter_key, n), state.parameters, state.states)
        log_weights = state.log_weights + gained
        after = NestedState(
            state.parameters,
            states,
            normalise(log_weights),
            state.log_past + gained,
            history,
            state.dropped | full,
        )
        poor = ess(log_weights) < self.threshold * n
        rejuvenate = poor & ~after.dropped
        after, accepted = jax.lax.switch(
            rejuvenate.astype(jnp.int32) + 2 * (poor & after.dropped),
            [
                lambda: (after, jnp.asarray(jnp.nan, log_weights.dtype)),
                lambda: self._rejuvenate(renew_key, model, after),
                lambda: (_shrunk(renew_key, after), jnp.asarray(jnp.nan, log_weights.dtype)),
            ],
        )
        info = Info(
            ess=ess(log_weights),
            log_predictive=jax.nn.logsumexp(log_weights),
            exact=~after.dropped,
            move=jnp.where(poor, int(Move.TEMPERED), int(Move.WEIGHED)),
            possible=jnp.mean(jnp.isfinite(gained)),
            undefined=jnp.mean(jnp.isnan(gained)),
            details={"acceptance": accepted},
        )
        return after, info

    def particles(self, state: NestedState) -> Particles:
        """One state of each filter, with the weight of its parameters: a joint draw of both."""
        return Particles(state.states[:, 0], state.log_weights)

    def parameters(self, model: Model, state: NestedState) -> Any:
        """The parameters, one for each particle, as the model has them."""
        return jax.vmap(_unravel(model))(state.parameters)

    def unsupported(self, model: Model) -> str | None:
        if not has_parameters(model):
            return "it is for models with `sample_parameters`; leave `method` out."
        return None

    def _at(self, model: Model, theta: Array, conditions: Conditions) -> Model:
        given = Conditions(
            conditions.dt, conditions.time, conditions.inputs, conditions.observed, _unravel(model)(theta)
        )
        return bind(unbound(model), given, shape=getattr(model, "shape", None))

    def _first(self, key: Key, model: Model, theta: Array) -> Points:
        here = self._at(model, theta, conditions_of(model))
        return jax.vmap(here.sample_prior)(jax.random.split(key, self.inner))

    def _inner_step(
        self, key: Key, model: Model, theta: Array, states: Points, conditions: Conditions, observation: Observation
    ) -> tuple[Points, Scalar]:
        """One step of one bootstrap filter, and its estimate of log p(y | past, θ)."""
        move_key, resample_key = jax.random.split(key)
        here = self._at(model, theta, conditions)
        moved = jax.vmap(here.sample_transition)(jax.random.split(move_key, self.inner), states)  # type: ignore[attr-defined]
        values = jax.vmap(here.log_likelihood, (0, None))(moved, observation)
        gained = jax.nn.logsumexp(values) - jnp.log(float(self.inner))
        alive = jnp.where(jnp.isfinite(gained), normalise(values), -jnp.log(float(self.inner)))
        kept = systematic(resample_key, alive, self.inner)
        # systematic resampling keeps an order; the first of the states is looked at, so it must be any of them
        first = jax.random.randint(jax.random.fold_in(resample_key, 1), (), 0, self.inner)
        return moved[jnp.roll(kept, -first)], gained

    def _whole_past(self, key: Key, model: Model, theta: Array, history: History) -> tuple[Points, Scalar]:
        """A fresh filter over all rows kept: its states, and its log likelihood."""

        def include(i, carry):
            states, total = carry
            row = jax.tree.map(lambda leaf: leaf[i], history.stored)
            states, gained = self._inner_step(
                jax.random.fold_in(key, i), model, theta, states, row.conditions, row.observations
            )
            return states, total + gained

        begun = self._first(jax.random.fold_in(key, history.capacity), model, theta)
        return jax.lax.fori_loop(0, history.count, include, (begun, jnp.zeros((), theta.dtype)))

    def _rejuvenate(self, key: Key, model: Model, state: NestedState) -> tuple[NestedState, Scalar]:
        """Resample, then Metropolis steps at three scales in the cloud's own frame."""
        n, p = state.parameters.shape
        resample_key, moves_key = jax.random.split(key)
        frame = whitening_of(state.parameters, jnp.exp(state.log_weights))
        kept = systematic(resample_key, state.log_weights, n)
        log_parameters = unbound(model).log_parameters  # type: ignore[attr-defined]
        log_prior = jax.vmap(lambda theta: log_parameters(_unravel(model)(theta)))

        def move(carry, move_key):
            theta_key, filter_key, accept_key, size_key = jax.random.split(move_key, 4)
            thetas, states, log_past = carry
            size = jnp.exp(jax.random.uniform(size_key, (n, 1), minval=-1.5, maxval=0.3))
            noise = jax.random.normal(theta_key, (n, p), thetas.dtype)
            proposed = thetas + size * frame.vectors(noise)
            new_states, new_past = jax.vmap(lambda k, theta: self._whole_past(k, model, theta, state.history))(
                jax.random.split(filter_key, n), proposed
            )
            log_ratio = new_past + log_prior(proposed) - log_past - log_prior(thetas)
            accept = jnp.log(jax.random.uniform(accept_key, (n,))) < jnp.nan_to_num(log_ratio, nan=-jnp.inf)
            chosen = (
                jnp.where(accept[:, None], proposed, thetas),
                jnp.where(accept[:, None, None], new_states, states),
                jnp.where(accept, new_past, log_past),
            )
            return chosen, jnp.mean(accept)

        begun = (state.parameters[kept], state.states[kept], state.log_past[kept])
        (thetas, states, log_past), rates = jax.lax.scan(move, begun, jax.random.split(moves_key, self.moves))
        even = jnp.full_like(state.log_weights, -jnp.log(float(n)))
        return NestedState(thetas, states, even, log_past, state.history, state.dropped), jnp.mean(rates)


def _shrunk(key: Key, state: NestedState) -> NestedState:
    """Parameters from kernels drawn to their mean, so that mean and covariance stay; their filters go with them."""
    n, _ = state.parameters.shape
    resample_key, noise_key = jax.random.split(key)
    weights = jnp.exp(state.log_weights)
    frame = whitening_of(state.parameters, weights)
    kept = systematic(resample_key, state.log_weights, n)
    centred = jnp.sqrt(1 - SHRINK**2) * (state.parameters[kept] - frame.mean)
    noise = jax.random.normal(noise_key, state.parameters.shape, state.parameters.dtype)
    thetas = frame.mean + centred + SHRINK * frame.vectors(noise)
    even = jnp.full_like(state.log_weights, -jnp.log(float(n)))
    return NestedState(thetas, state.states[kept], even, state.log_past[kept], state.history, state.dropped)


def _plain(model: Model) -> Model:
    """The model under its conditions, without parameters: how rows are stored, and shapes are seen."""
    given = conditions_of(model)
    example = jax.eval_shape(unbound(model).sample_parameters, jax.random.key(0))  # type: ignore[attr-defined]
    zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), example)
    return bind(
        unbound(model),
        Conditions(given.dt, given.time, given.inputs, given.observed, zeros),
        shape=getattr(model, "shape", None),
    )


def _unravel(model: Model):
    """From a flat vector to the model's parameters."""
    example = jax.eval_shape(unbound(model).sample_parameters, jax.random.key(0))  # type: ignore[attr-defined]
    zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, jnp.result_type(float)), example)
    return ravel_pytree(zeros)[1]
