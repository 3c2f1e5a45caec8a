"""How fast: updates, velocity evaluations and training steps, each beside something it can be compared with."""

from collections.abc import Iterator

import equinox as eqx
import jax
from jax import numpy as jnp

from pfbr.baselines import BootstrapSMC, EnKF
from pfbr.flow.likelihood import Likelihood
from pfbr.inference.architectures import build, choose
from pfbr.inference.method import Method
from pfbr.inference.operator import Operator
from pfbr.judging.bench_sessions import session_timings
from pfbr.judging.timing import Timing, seconds_of
from pfbr.models.base import Model
from pfbr.models.linear_dynamics import LinearDynamics
from pfbr.training.objectives.elbo import ElboObjective
from pfbr.training.settings import TrainingSettings
from pfbr.training.step import optimiser, train_step
from pfbr.training.tasks import ModelFamily
from pfbr.typing import Key

DIM, PARTICLES = 10, 256


def timings() -> Iterator[Timing]:
    """All lines, one by one, as they are measured."""
    yield from session_timings()
    model = LinearDynamics.random(0, DIM)
    key = jax.random.key(0)
    operators = {
        "paper": build(key, choose("paper", model)),
        "gaussian": build(key, choose("gaussian", model)),
        "residual": build(key, choose("residual", model)),
    }
    rate = matrix_product_rate()
    yield Timing("machine", "matrix product, 1024 x 1024", 2 * 1024**3 / rate, f"{rate / 1e9:.0f} GFLOP/s")
    for name, operator in operators.items():
        yield Timing(
            f"one update, {PARTICLES} particles, d = {DIM}, log density included",
            f"{name}: the flow",
            seconds_of(_flow_only(operator, model)),
            f"{_evaluations(operator)} velocity evaluations",
        )
    others = {"ensemble Kalman filter": EnKF(), "bootstrap SMC": BootstrapSMC()}
    for name, method in {**{f"{n}: whole step": o for n, o in operators.items()}, **others}.items():
        yield Timing(
            f"one step with the dynamics, {PARTICLES} particles, d = {DIM}",
            name,
            seconds_of(_whole_step(method, model)),
        )
    for name, operator in operators.items():
        seconds = seconds_of(_evaluation(operator, model), repeats=20) / 50
        work = flop_of_evaluation(operator, model)
        note = "" if work is None else f"{work / seconds / rate:.0%} of the matrix-product rate"
        yield Timing(f"one velocity evaluation with divergence, {PARTICLES} particles", name, seconds, note)
    for name in ("paper", "residual"):
        yield Timing(
            "one training step: 25 stages, 1024 particles, 4 velocity evaluations an update",
            name,
            seconds_of(_training_step(model, name), repeats=3),
        )


def matrix_product_rate() -> float:
    """Floating-point operations a second in a large float32 product: what the machine can do at best."""
    a = jnp.ones((1024, 1024))
    return 2 * 1024**3 / seconds_of(lambda: _product(a), repeats=10)


@jax.jit
def _product(a):
    return a @ a


def _flow_only(operator: Operator, model: Model):
    particles = operator.init(jax.random.key(1), model, PARTICLES)
    likelihood = Likelihood(model, jnp.ones(DIM))
    arrays = (operator, particles, likelihood)
    compiled, key = eqx.filter_jit(lambda k, a: a[0].move(k, a[1], a[2])), jax.random.key(2)
    return lambda: compiled(key, arrays)


def _whole_step(method: Method, model: Model):
    state = method.init(jax.random.key(1), model, PARTICLES)
    compiled, key, observation = eqx.filter_jit(method.update), jax.random.key(2), jnp.ones(DIM)
    return lambda: compiled(key, model, state, observation)


def _evaluation(operator: Operator, model: Model):
    """Fifty evaluations in a row inside one compiled loop, so that the call itself does not count."""
    points = operator.init(jax.random.key(1), model, PARTICLES).points
    likelihood = Likelihood(model, jnp.ones(DIM))
    context = operator.velocity.prepare(jax.random.key(2), points, likelihood)

    @eqx.filter_jit
    def many(velocity, points):
        def again(_, carry):
            points, total = carry
            value, divergence = velocity(jnp.asarray(0.5), points, points, context, likelihood)
            return points + 1e-6 * value, total + divergence

        return jax.lax.fori_loop(0, 50, again, (points, jnp.zeros(PARTICLES)))

    return lambda: many(operator.velocity, points)


def flop_of_evaluation(operator: Operator, model: Model) -> float | None:
    """Floating-point operations of one evaluation, as the compiler counts them; None where it does not say."""
    points = operator.init(jax.random.key(1), model, PARTICLES).points
    likelihood = Likelihood(model, jnp.ones(DIM))
    context = operator.velocity.prepare(jax.random.key(2), points, likelihood)
    weights, rest = eqx.partition(operator.velocity, eqx.is_array)

    def once(weights, points):
        return eqx.combine(weights, rest)(jnp.asarray(0.5), points, points, context, likelihood)

    cost = jax.jit(once).lower(weights, points).compile().cost_analysis()
    return None if not cost else cost.get("flops")


def _evaluations(operator: Operator) -> int:
    return operator.settings.steps * 2  # Heun's method


def _training_step(model: Model, name: str):
    operator = build(jax.random.key(0), choose(name, model, steps=2))
    settings = TrainingSettings(steps=1, num_particles=1024, length=25, batch=1)
    draw = ElboObjective(ModelFamily(model), settings)
    state = optimiser(settings).init(eqx.filter(operator, eqx.is_inexact_array))
    key: Key = jax.random.key(3)
    return lambda: train_step(key, draw, operator, state, jnp.asarray(1e-3))
