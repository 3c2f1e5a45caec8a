"""What one step says about itself: for looking at, never needed for the next step."""

from enum import IntEnum
from typing import Any

import equinox as eqx

Told = Any  # a JAX number of one step, or arrays over stages and streams, JAX's or NumPy's; None: not told


class Move(IntEnum):
    """How the particles took an observation in."""

    NONE = 0  # nothing was observed
    WEIGHED = 1  # they stay where they are, with other weights
    FLOW = 2  # moved along a velocity
    TEMPERED = 3  # the observation switched on in steps, with resampling and Markov moves
    SECOND_LOOK = 4  # the last reports replayed with more particles
    OVERSAMPLED = 5  # several draws of the dynamics from each particle, weighed and thinned


class Info(eqx.Module):
    """Numbers of one step; None where the method cannot tell.

    `log_predictive` is log p(observation | all before), the step's gain in log evidence; `log_evidence` their sum so
    far. `flagged` says that the posterior after this step is more likely wrong than not (docs/trust.md says how that is
    meant). `possible` and `undefined` are the shares of the particles at which the log likelihood was finite, and NaN.
    """

    ess: Told = None
    pareto_k: Told = None
    log_predictive: Told = None
    log_evidence: Told = None
    flagged: Told = None
    exact: Told = None
    move: Told = None
    possible: Told = None
    undefined: Told = None
    details: dict[str, Any] = eqx.field(default_factory=dict)  # what only this method has to say

    def items(self) -> list[tuple[str, Any]]:
        """Name and value of everything that was said, details included."""
        own = [(name, getattr(self, name)) for name in FIELDS]
        return [(name, value) for name, value in (*own, *self.details.items()) if value is not None]


FIELDS = (
    "ess",
    "pareto_k",
    "log_predictive",
    "log_evidence",
    "flagged",
    "exact",
    "move",
    "possible",
    "undefined",
)
