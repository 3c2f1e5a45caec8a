"""Move particles along a velocity, and their log density with them; the only file that knows the ODE solver."""

from typing import Any

import diffrax
import equinox as eqx
import jax
from jax import numpy as jnp

from pfbr.errors import InputError
from pfbr.likelihood import Likelihood
from pfbr.shapes import PerParticle, Points, Scalar
from pfbr.velocities.base import Velocity

SOLVERS = {
    "euler": diffrax.Euler,
    "midpoint": diffrax.Midpoint,
    "heun": diffrax.Heun,
    "ralston": diffrax.Ralston,
    "bosh3": diffrax.Bosh3,
    "tsit5": diffrax.Tsit5,
    "dopri5": diffrax.Dopri5,
}


class FlowSettings(eqx.Module):
    """How the ODE is solved.

    `steps` of equal length, or, when `tolerance` is given, steps that adapt to it (at most `max_steps`).
    `gradient` is "checkpoint" (back-propagation through the solver, recomputing each step) or "adjoint" (the
    continuous adjoint of Appendix B: constant memory, a gradient of the continuous problem).
    """

    solver: str = eqx.field(static=True, default="heun")
    steps: int = eqx.field(static=True, default=4)
    tolerance: float | None = eqx.field(static=True, default=None)
    max_steps: int = eqx.field(static=True, default=256)
    gradient: str = eqx.field(static=True, default="checkpoint")

    def __check_init__(self):
        if self.solver not in SOLVERS:
            raise InputError(f"`solver` must be one of {', '.join(SOLVERS)}; got {self.solver!r}.")
        if self.gradient not in ("checkpoint", "adjoint"):
            raise InputError(f'`gradient` must be "checkpoint" or "adjoint"; got {self.gradient!r}.')
        if self.steps < 1:
            raise InputError(f"`steps` must be at least 1; got {self.steps}.")
        if self.tolerance is not None and self.solver == "euler":
            raise InputError("Euler's method has no error estimate to adapt to; choose another solver.")


class Moved(eqx.Module):
    """Where the points are after the flow, and their log density there."""

    points: Points
    log_density: PerParticle
    num_steps: Scalar


def flow(
    settings: FlowSettings,
    velocity: Velocity,
    context: Any,
    likelihood: Likelihood,
    points: Points,
    log_density: PerParticle,
    *,
    support: Points | None = None,
    reverse: bool = False,
) -> Moved:
    """Solve dx/dt = f, d log q/dt = −∇·f from t = 0 to 1, or back.

    With a `support` of its own the points are carried along by the flow of another set and do not influence it:
    given that set, every point is moved by the same map, and its log density is exact.
    """
    term = diffrax.ODETerm(_field)
    start, end = (1.0, 0.0) if reverse else (0.0, 1.0)
    state = (points, log_density) if support is None else (points, log_density, support)
    args = (velocity, context, likelihood)
    if settings.tolerance is None and settings.gradient == "checkpoint":
        state = _equal_steps(settings, term, start, end, state, args)
        num_steps = jnp.asarray(settings.steps)
    else:
        state, num_steps = _solve(settings, term, start, end, state, args)
    return Moved(state[0], state[1], num_steps)


def _field(t, state, args):
    velocity, context, likelihood = args
    points, _, *other = state
    support = other[0] if other else points
    value, divergence = velocity(t, points, support, context, likelihood)
    moved = (value, -divergence)
    if other:
        moved += (velocity(t, support, support, context, likelihood)[0],)
    return moved


def _equal_steps(settings, term, start, end, state, args):
    """A plain scan over the solver's steps: it compiles sooner and back-propagates faster than a general solve."""
    solver = SOLVERS[settings.solver]()
    width = (end - start) / settings.steps
    solver_state = solver.init(term, start, start + width, state, args)

    @jax.checkpoint
    def step(carry, index):
        state, solver_state = carry
        t = start + index * width
        state, _, _, solver_state, _ = solver.step(term, t, t + width, state, args, solver_state, made_jump=False)
        return (state, solver_state), None

    return jax.lax.scan(step, (state, solver_state), jnp.arange(settings.steps, dtype=state[0].dtype))[0][0]


def _solve(settings, term, start, end, state, args):
    fixed = settings.tolerance is None
    solution = diffrax.diffeqsolve(
        term,
        SOLVERS[settings.solver](),
        start,
        end,
        (end - start) / settings.steps,
        state,
        args,
        stepsize_controller=diffrax.ConstantStepSize()
        if fixed
        else diffrax.PIDController(rtol=settings.tolerance, atol=settings.tolerance),
        adjoint=diffrax.RecursiveCheckpointAdjoint() if settings.gradient == "checkpoint" else diffrax.BacksolveAdjoint(),
        max_steps=settings.steps + 1 if fixed else settings.max_steps,
        throw=False,  # a flow that ran out of steps is reported by the caller, who knows what was being done
    )
    failed = solution.result != diffrax.RESULTS.successful
    moved = jax.tree.map(lambda leaf: jnp.where(failed, jnp.nan, leaf[-1]), solution.ys)
    return moved, solution.stats["num_steps"]
