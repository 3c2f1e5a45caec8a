"""The paper's velocity: gated layers that see the set summary and the observation at every depth (Appendix C)."""

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.errors import InputError
from pfbr.flow.divergence import WAYS, by_forward_mode, by_hutchinson
from pfbr.flow.likelihood import Likelihood
from pfbr.flow.networks import FEEDS, Batch, DeepSet, OrderedBatch, RawObservation
from pfbr.flow.velocities.base import Velocity
from pfbr.typing import Key, PerParticle, Points, Scalar, Support


class GatedLayer(eqx.Module):
    """Gated(y, t) = (W [ctx, extra, y] + b) * σ(t v + c) + t c.

    W is kept in three blocks, because the context's product is the same for every particle and every t.
    """

    from_context: Array
    from_extra: Array
    from_input: Array
    bias: Array
    speed: Array
    offset: Array

    def __init__(self, key: Key, context: int, extra: int, width_in: int, width_out: int, scale: float = 1.0):
        weight = scale * jax.random.normal(key, (context + extra + width_in, width_out))
        weight = weight / jnp.sqrt(context + extra + width_in)
        self.from_context, self.from_extra, self.from_input = jnp.split(weight, [context, context + extra])
        self.bias, self.speed, self.offset = jnp.zeros((3, width_out))

    def gate(self, t: Scalar) -> Float[Array, " width"]:
        return jax.nn.sigmoid(t * self.speed + self.offset)

    def __call__(
        self, y: Float[Array, "n i"], extra: Float[Array, "n e"], context: Float[Array, " c"], t: Scalar
    ) -> Float[Array, "n o"]:
        linear = y @ self.from_input + extra @ self.from_extra + (context @ self.from_context + self.bias)
        return linear * self.gate(t) + t * self.offset


class Opened(eqx.Module):
    """Context of one update: set summary and observation, the time interval, and a probe for estimated traces."""

    context: Float[Array, " c"]
    start: Scalar
    length: Scalar
    probe: Points | None


class GatedVelocity(Velocity):
    """f = Gated_k([ctx, tanh(… Gated_1([ctx, x], t))], t), ctx = [mean φ(x_n), observation].

    `feed` says how the observation enters: "raw" (o itself), "score" (∇ log p(o | x(t)), at each particle and
    time), "mean" (mean of g over a batch), "ordered" (a recurrent reading of a batch). `time` is "fixed" (t runs
    over [0, 1]) or "predicted" (start and length of the interval come from the context).
    """

    summary: DeepSet
    observation: RawObservation | Batch | OrderedBatch | None
    layers: list[GatedLayer]
    interval: Array | None
    divergence: str = eqx.field(static=True)

    def __init__(
        self,
        key: Key,
        dim: int,
        observation_shape: tuple[int, ...],
        *,
        width: int = 64,
        num_layers: int = 3,
        feed: str = "raw",
        time: str = "predicted",
        divergence: str = "exact",
    ):
        _check_settings(num_layers, feed, time, divergence, observation_shape)
        set_key, observation_key, layers_key = jax.random.split(key, 3)
        self.summary = DeepSet(set_key, dim, width)
        context = width
        self.observation = None
        size = 1
        for entry in observation_shape:
            size *= entry
        if feed == "raw":
            self.observation, context = RawObservation(), context + size
        elif feed in ("mean", "ordered"):
            embedding = Batch if feed == "mean" else OrderedBatch
            self.observation = embedding(observation_key, size // observation_shape[0], width)
            context += width
        extra = dim if feed == "score" else 0
        widths = (dim,) + (width,) * (num_layers - 1) + (dim,)
        keys = jax.random.split(layers_key, num_layers)
        # a small last layer: the untrained operator hardly moves anything
        scales = (1.0,) * (num_layers - 1) + (0.1,)
        self.layers = [
            GatedLayer(k, context, extra, m, n, s)
            for k, m, n, s in zip(keys, widths[:-1], widths[1:], scales, strict=True)
        ]
        self.interval = jnp.zeros((context, 2)) if time == "predicted" else None
        self.divergence = divergence

    @property
    def reads_observation(self) -> bool:
        return self.observation is not None

    def prepare(self, key: Key, support: Support, likelihood: Likelihood) -> Opened:
        context = self.summary(support)
        if self.observation is not None:
            context = jnp.concatenate([context, self.observation(likelihood.observation)])
        start, length = jnp.zeros(()), jnp.ones(())
        if self.interval is not None:
            start, stretch = context @ self.interval
            length = 2 * jax.nn.sigmoid(stretch)  # one at first, never negative, never beyond two
        probe = jax.random.rademacher(key, support.shape, support.dtype) if self.divergence == "hutchinson" else None
        return Opened(context, start, length, probe)

    def __call__(
        self, t: Scalar, points: Points, support: Support, context: Opened, likelihood: Likelihood
    ) -> tuple[Points, PerParticle]:
        t = context.start + context.length * t

        def field(x):
            extra = likelihood.scores(x) if self.observation is None else x[:, :0]
            y = x
            for layer in self.layers[:-1]:
                y = jnp.tanh(layer(y, extra, context.context, t))
            return self.layers[-1](y, extra, context.context, t)

        by_structure = self.observation is not None and len(self.layers) <= 3
        if self.divergence == "hutchinson":
            assert context.probe is not None  # drawn by `prepare` for this very purpose
            value, trace = by_hutchinson(field, points, context.probe)
        elif self.divergence == "structure" or (self.divergence == "exact" and by_structure):
            value, trace = self._by_structure(points, context.context, t)
        else:
            value, trace = by_forward_mode(field, points)
        return context.length * value, context.length * trace

    def _by_structure(self, points: Points, context: Array, t: Scalar) -> tuple[Points, PerParticle]:
        """Values and exact divergence for up to three layers: gates scale columns, tanh scales by 1 − y².

        With two hidden layers tr J = Σ_{h,g} a_h (W1 W3)_{·}… = a1ᵀ (W2 ∘ (W3 W1)ᵀ) a2 at each particle: one more
        product of the size of the layer itself, whatever d is.
        """
        nothing = points[:, :0]
        y, hidden, slopes = points, [], []
        for layer in self.layers[:-1]:
            y = jnp.tanh(layer(y, nothing, context, t))
            hidden.append(y)
            slopes.append((1 - y**2) * layer.gate(t))
        last = self.layers[-1]
        value = last(y, nothing, context, t)
        out = last.from_input * last.gate(t)
        if not hidden:
            return value, jnp.broadcast_to(jnp.trace(out), points.shape[:1])
        first = self.layers[0].from_input
        if len(hidden) == 1:
            return value, slopes[0] @ jnp.sum(first * out.T, axis=0)
        return value, jnp.sum((slopes[0] @ (self.layers[1].from_input * (out @ first).T)) * slopes[1], axis=-1)


def _check_settings(num_layers, feed, time, divergence, observation_shape):
    if num_layers < 1:
        raise InputError(f"`num_layers` must be at least 1; got {num_layers}.")
    for name, value, allowed in (
        ("feed", feed, FEEDS),
        ("time", time, ("fixed", "predicted")),
        ("divergence", divergence, WAYS),
    ):
        if value not in allowed:
            raise InputError(f"`{name}` must be one of {', '.join(allowed)}; got {value!r}.")
    if feed in ("mean", "ordered") and len(observation_shape) < 2:
        raise InputError(
            f"feed={feed!r} embeds a batch (L, k) of observations, but one observation of this model has shape "
            f"{observation_shape}. Wrap the model: pfbr.models.MiniBatch(model, size)."
        )
    if divergence == "structure" and (feed == "score" or num_layers > 3):
        raise InputError(
            "the divergence by structure needs at most three layers and an observation that is not fed as a score; "
            'use divergence="forward".'
        )
