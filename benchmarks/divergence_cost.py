"""What the divergence costs in 51 dimensions with 256 particles: one update, and one gradient of it.

    python benchmarks/divergence_cost.py

The paper's velocity with a batch embedding, its divergence by structure, by 51 forward derivatives, estimated by
Hutchinson's probe, and left out (which only a loss that needs no log density can afford); then our velocities, which
are affine in x. CPU milliseconds once compiled, the best of ten.
"""

import time

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

from pfbr.flow.likelihood import Likelihood
from pfbr.flow.settings import FlowSettings
from pfbr.flow.velocities import GatedVelocity, InformedVelocity
from pfbr.inference.operator import Operator, gaussian_operator
from pfbr.paper.digits.rotations import digit_model
from pfbr.particles.particles import equally_weighted

DIM, BATCH, PARTICLES = 51, 32, 256
key = jax.random.key(0)
model = digit_model(DIM - 1, BATCH)
points = jax.random.normal(key, (PARTICLES, DIM))
batch = model.sample_observation(key, 0.3 * points[0])
before = equally_weighted(points, jax.vmap(model.log_prior)(points))


class WithoutDivergence(GatedVelocity):
    """The same velocity; zero in place of its divergence, so that nothing is computed for it."""

    def __call__(self, *inputs):
        value, divergence = super().__call__(*inputs)
        return value, jnp.zeros_like(divergence)


def gated(kind, way: str) -> Operator:
    return Operator(kind(key, DIM, (BATCH, DIM + 1), feed="mean", divergence=way), FlowSettings(steps=4))


operators = {f"the paper's, {way}": gated(GatedVelocity, way) for way in ("structure", "forward", "hutchinson")}
operators["the paper's, left out"] = gated(WithoutDivergence, "structure")
operators["informed, exact"] = Operator(InformedVelocity(key, DIM, (BATCH, DIM + 1)), FlowSettings(steps=4))
operators["training-free, exact"] = gaussian_operator(steps=4)


def milliseconds(function, *inputs) -> float:
    compiled = eqx.filter_jit(function).lower(*inputs).compile()
    jax.block_until_ready(compiled(*inputs))
    best = np.inf
    for _ in range(10):
        started = time.process_time()
        jax.block_until_ready(compiled(*inputs))
        best = min(best, time.process_time() - started)
    return 1e3 * best


def move(operator):
    return operator.move(key, before, Likelihood(model, batch))


def gradient(operator):
    """Of a loss that needs the particles and their density, with respect to all weights."""

    def loss(weights, rest):
        moved = eqx.combine(weights, rest).move(key, before, Likelihood(model, batch))
        return jnp.mean(moved.log_density) - jnp.mean(jax.vmap(model.log_prior)(moved.points))

    return jax.grad(loss)(*eqx.partition(operator, eqx.is_inexact_array))


for name, operator in operators.items():
    trained = bool(jax.tree.leaves(eqx.filter(operator, eqx.is_inexact_array)))
    back = f"{milliseconds(gradient, operator):8.1f}" if trained else "       –"
    print(f"{name:28s} update {milliseconds(move, operator):8.1f} ms   gradient {back} ms", flush=True)
