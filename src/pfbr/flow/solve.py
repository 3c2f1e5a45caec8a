"""Move particles along a velocity, and their log density with them; the only file that knows the ODE solver."""

from typing import Any

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Int

from pfbr.errors import InputError
from pfbr.flow.affine import affine_steps
from pfbr.flow.likelihood import Likelihood
from pfbr.flow.settings import CLOSED_FORM, MAP, SOLVERS, FlowSettings
from pfbr.flow.transport.mapped import MapVelocity
from pfbr.flow.velocities.affine import AffineVelocity
from pfbr.flow.velocities.base import Velocity
from pfbr.typing import PerParticle, Points, Support


def _solver(name: str):
    """Of diffrax, which is imported where a solver runs: the default method needs none."""
    import diffrax

    return getattr(diffrax, name.capitalize())


class FlowResult(eqx.Module):
    """Where the points are after the flow, and their log density there."""

    points: Points
    log_density: PerParticle
    num_steps: Int[Array, ""]
    scores: Points | None = None  # about those of the log density, from flows that need them before


def flow(
    settings: FlowSettings,
    velocity: Velocity,
    context: Any,
    likelihood: Likelihood,
    points: Points,
    log_density: PerParticle,
    *,
    scores: Points | None = None,
    support: Support | None = None,
    reverse: bool = False,
) -> FlowResult:
    """Solve dx/dt = f, d log q/dt = −∇·f from t = 0 to 1, or back.

    With a `support` of its own the points are carried along by the flow of another set and do not influence it:
    given that set, every point is moved by the same map, and its log density is exact. `scores` of the log density
    before are what the learned map needs.
    """
    start, end = (1.0, 0.0) if reverse else (0.0, 1.0)
    if isinstance(velocity, MapVelocity) or settings.solver == MAP:
        return _by_map(settings, velocity, likelihood, points, log_density, scores, support is not None or reverse)
    state = (points, log_density) if support is None else (points, log_density, support)
    args = (velocity, context, likelihood)
    if settings.solver == CLOSED_FORM:
        if not isinstance(velocity, AffineVelocity):
            raise InputError(
                f"the {CLOSED_FORM} solver needs an affine velocity; {type(velocity).__name__} is none. Choose one of "
                f"{', '.join(SOLVERS)}."
            )
        there = affine_steps(
            velocity, context, likelihood, points, log_density, support, steps=settings.steps, reverse=reverse
        )
        return FlowResult(*there, jnp.asarray(settings.steps))
    if settings.tolerance is None and settings.gradient == "checkpoint":
        state = _equal_steps(settings, start, end, state, args)
        num_steps = jnp.asarray(settings.steps)
    else:
        state, num_steps = _solve(settings, start, end, state, args)
    return FlowResult(state[0], state[1], num_steps)


def _by_map(settings, velocity, likelihood, points, log_density, scores, otherwise: bool) -> FlowResult:
    if not isinstance(velocity, MapVelocity) or settings.solver != MAP:
        raise InputError(
            f'the solver "{MAP}" and the learned map belong together; got {settings.solver!r} with '
            f"{type(velocity).__name__}."
        )
    if otherwise or scores is None:
        raise InputError(
            "the learned map moves a whole set forwards, whose scores are known: it can neither carry other points "
            "along (`strict`) nor go back. Use another operator for that."
        )
    there = velocity.moved(points, log_density, scores, likelihood)
    return FlowResult(there.points, log_density - there.log_det, jnp.asarray(1), there.scores)


def _field(t, state, args):
    velocity, context, likelihood = args
    points, _, *other = state
    support = other[0] if other else points
    value, divergence = velocity(t, points, support, context, likelihood)
    moved = (value, -divergence)
    if other:
        moved += (velocity(t, support, support, context, likelihood)[0],)
    return moved


def _equal_steps(settings, start, end, state, args):
    """A scan over steps of the solver's own Runge–Kutta table, its stages written out.

    Against a general solve this compiles sooner and back-propagates several times faster, because nothing has to be
    known about steps that might be rejected.
    """
    table = _solver(settings.solver).tableau
    width = (end - start) / settings.steps

    @jax.checkpoint
    def step(state, index):
        t = start + index * width
        slopes = []
        for c, row in zip((0.0, *table.c), ([], *table.a_lower), strict=True):
            slopes.append(_field(t + float(c) * width, _advanced(state, width, row, slopes), args))
        return _advanced(state, width, table.b_sol, slopes), None

    return jax.lax.scan(step, state, jnp.arange(settings.steps, dtype=state[0].dtype))[0]


def _advanced(state, width, weights, slopes):
    """state + width Σ_i weight_i slope_i"""
    for weight, slope in zip(weights, slopes, strict=True):
        if weight != 0:
            state = jax.tree.map(lambda y, k, w=float(weight): y + (width * w) * k, state, slope)
    return state


def _solve(settings, start, end, state, args):
    import diffrax

    fixed = settings.tolerance is None
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(_field),
        _solver(settings.solver)(),
        start,
        end,
        (end - start) / settings.steps,
        state,
        args,
        stepsize_controller=diffrax.ConstantStepSize()
        if fixed
        else diffrax.PIDController(rtol=settings.tolerance, atol=settings.tolerance),
        adjoint=diffrax.RecursiveCheckpointAdjoint()
        if settings.gradient == "checkpoint"
        else diffrax.BacksolveAdjoint(),
        max_steps=settings.steps + 1 if fixed else settings.max_steps,
        throw=False,  # a flow that ran out of steps is reported by the caller, who knows what was being done
    )
    failed = solution.result != diffrax.RESULTS.successful
    moved = jax.tree.map(lambda leaf: jnp.where(failed, jnp.nan, leaf[-1]), solution.ys)
    return moved, solution.stats["num_steps"]
