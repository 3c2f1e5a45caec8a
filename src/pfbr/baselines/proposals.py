"""Networks that guess the next state from the last one and the observations: a dense net, or a recurrent one."""

from abc import abstractmethod

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.baselines import edge
from pfbr.errors import InputError
from pfbr.models.base import Model, StateSpaceModel
from pfbr.models.simulate import simulate
from pfbr.typing import Key, Observation, Point

Memory = Float[Array, " h"]


class Scales(eqx.Module):
    """How large states and observations are, and the best linear guess of x from (x_prev, o), from simulation."""

    state_mean: Float[Array, " d"]
    state_std: Float[Array, " d"]
    seen_mean: Float[Array, " k"]
    seen_std: Float[Array, " k"]
    linear: Float[Array, "d d_plus_k"]  # on standardised inputs and outputs
    residual_std: Float[Array, " d"]


def measure_scales(key: Key, model: StateSpaceModel, *, length: int = 25, num_streams: int = 64) -> Scales:
    """Moments of simulated streams, and a least-squares fit that the networks start from."""

    def stream(stream_key):
        start_key, rest_key = jax.random.split(stream_key)
        start = model.sample_prior(start_key)
        drawn = simulate(rest_key, model, length, at=start)
        observations, states = drawn.observations, drawn.truths
        return jnp.concatenate([start[None], states[:-1]]), observations.reshape(length, -1), states

    before, seen, after = (x.reshape(-1, x.shape[-1]) for x in jax.vmap(stream)(jax.random.split(key, num_streams)))
    state_mean, state_std = jnp.mean(after, 0), jnp.std(after, 0) + 1e-6
    seen_mean, seen_std = jnp.mean(seen, 0), jnp.std(seen, 0) + 1e-6
    inputs = jnp.concatenate([(before - state_mean) / state_std, (seen - seen_mean) / seen_std], axis=1)
    targets = (after - state_mean) / state_std
    gram = inputs.T @ inputs + 1e-3 * jnp.eye(inputs.shape[1])
    linear = jnp.linalg.solve(gram, inputs.T @ targets).T
    residual_std = jnp.std(targets - inputs @ linear.T, axis=0) + 1e-4
    return Scales(state_mean, state_std, seen_mean, seen_std, linear, residual_std)


class Proposal(eqx.Module):
    """q(x | x_prev, observations so far): a Gaussian with independent components."""

    @abstractmethod
    def start(self) -> Memory:
        """What is remembered before any observation."""

    @abstractmethod
    def listen(self, memory: Memory, observation: Observation) -> Memory:
        """What is remembered after one more."""

    @abstractmethod
    def propose(self, memory: Memory, observation: Observation, x: Point) -> tuple[Point, Point]:
        """Mean and standard deviation of the next state."""


class _Head(eqx.Module):
    """A linear guess that starts at least squares, plus a dense net that starts at zero."""

    scales: Scales
    linear: Float[Array, "d d_plus_k"]
    log_std: Float[Array, " d"]
    net: eqx.nn.MLP

    def __init__(self, key: Key, scales: Scales, extra: int, width: int):
        d, size = scales.linear.shape
        net = eqx.nn.MLP(size + extra, 2 * d, width, 2, activation=jnp.tanh, key=key)
        silent = (jnp.zeros((2 * d, width)), jnp.zeros(2 * d))
        self.net = eqx.tree_at(lambda n: (n.layers[-1].weight, n.layers[-1].bias), net, silent)
        self.scales, self.linear, self.log_std = scales, scales.linear, jnp.log(scales.residual_std)

    def seen(self, observation: Observation) -> Array:
        s = jax.lax.stop_gradient(self.scales)
        return (observation.reshape(-1) - s.seen_mean) / s.seen_std

    def __call__(self, observation: Observation, x: Point, extra: Array) -> tuple[Point, Point]:
        s = jax.lax.stop_gradient(self.scales)
        inputs = jnp.concatenate([(x - s.state_mean) / s.state_std, self.seen(observation)])
        shift, log_change = jnp.split(self.net(jnp.concatenate([inputs, extra])), 2)
        mean = s.state_mean + s.state_std * (self.linear @ inputs + shift)
        return mean, s.state_std * jnp.exp(self.log_std + jnp.clip(log_change, -3.0, 3.0))


class MLPProposal(Proposal):
    """A dense net of x_prev and the newest observation."""

    head: _Head

    def __init__(self, key: Key, scales: Scales, *, width: int = 64):
        self.head = _Head(key, scales, 0, width)

    def start(self) -> Memory:
        return jnp.zeros(0)

    def listen(self, memory: Memory, observation: Observation) -> Memory:
        return memory

    def propose(self, memory: Memory, observation: Observation, x: Point) -> tuple[Point, Point]:
        return self.head(observation, x, memory)


class GRUProposal(Proposal):
    """The same, with a gated recurrent unit that has read all observations."""

    head: _Head
    cell: eqx.nn.GRUCell

    def __init__(self, key: Key, scales: Scales, *, width: int = 64):
        head_key, cell_key = jax.random.split(key)
        self.head = _Head(head_key, scales, width, width)
        self.cell = eqx.nn.GRUCell(scales.seen_mean.shape[0], width, key=cell_key)

    def start(self) -> Memory:
        return jnp.zeros(self.cell.hidden_size)

    def listen(self, memory: Memory, observation: Observation) -> Memory:
        return self.cell(self.head.seen(observation), memory)

    def propose(self, memory: Memory, observation: Observation, x: Point) -> tuple[Point, Point]:
        return self.head(observation, x, memory)


KINDS: dict[str, type[MLPProposal] | type[GRUProposal]] = {"mlp": MLPProposal, "gru": GRUProposal}


def new_proposal(key: Key, model: Model, kind: str = "mlp", *, width: int = 64) -> Proposal:
    """An untrained network for the model; it already proposes the best linear guess."""
    reason = edge.needs_dynamics(model, "OnePassSMC")
    if reason is not None:
        raise InputError(f"a proposal cannot be made for {type(model).__name__}: {reason}")
    if kind not in KINDS:
        raise InputError(f"`kind` must be one of {', '.join(KINDS)}; got {kind!r}.")
    scales_key, net_key = jax.random.split(key)
    assert isinstance(model, StateSpaceModel)  # for the type checker; refused above otherwise
    return KINDS[kind](net_key, measure_scales(scales_key, model), width=width)
