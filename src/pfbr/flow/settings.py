"""How a flow is solved, as a user sets it."""

import equinox as eqx

from pfbr.checks import checked_amount, checked_count, shortened
from pfbr.errors import InputError

SOLVERS = ("midpoint", "heun", "ralston", "bosh3", "tsit5", "dopri5")
CLOSED_FORM = "closed-form"  # for affine velocities: see `affine_steps`
MAP = "map"  # for the learned map: one step, see `MapVelocity`
MOST_STEPS = 100_000  # a flow with more would take minutes an update


class FlowSettings(eqx.Module):
    """How the ODE is solved.

    `steps` of equal length, or, when `tolerance` is given, steps that adapt to it (at most `max_steps`). The solver
    "closed-form" serves affine velocities only, with equal steps; "map" the learned map, in one.
    `gradient` is "checkpoint" (back-propagation through the solver, recomputing each step) or "adjoint" (the
    continuous adjoint of Appendix B: constant memory, a gradient of the continuous problem).
    """

    solver: str = eqx.field(static=True, default="heun")
    steps: int = eqx.field(static=True, default=4)
    tolerance: float | None = eqx.field(static=True, default=None)
    max_steps: int = eqx.field(static=True, default=256)
    gradient: str = eqx.field(static=True, default="checkpoint")

    def __check_init__(self):
        if not isinstance(self.solver, str) or self.solver not in (*SOLVERS, CLOSED_FORM, MAP):
            known = ", ".join((*SOLVERS, CLOSED_FORM, MAP))
            raise InputError(f"`solver` must be one of {known}; got {shortened(self.solver)}.")
        if self.solver in (CLOSED_FORM, MAP) and (self.tolerance is not None or self.gradient != "checkpoint"):
            raise InputError(
                f"the {self.solver} solver takes equal steps and is differentiated through. For `tolerance` or the "
                f"continuous adjoint choose one of {', '.join(SOLVERS)}."
            )
        if self.gradient not in ("checkpoint", "adjoint"):
            raise InputError(f'`gradient` must be "checkpoint" or "adjoint"; got {self.gradient!r}.')
        for name in ("steps", "max_steps"):
            if checked_count(name, getattr(self, name), least=1) > MOST_STEPS:
                raise InputError(f"`{name}` must be at most {MOST_STEPS}; got {getattr(self, name)}.")
        if self.tolerance is not None:
            checked_amount("tolerance", self.tolerance, above=True)
