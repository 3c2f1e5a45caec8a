"""Right by default for static unknowns: weigh while that is enough, otherwise rejuvenate against the kept past."""

from pfbr.inference.adaptive.static.adaptive import (
    Adaptive,
    AdaptiveState,
    Info,
    Move,
    init,
    make_room,
    rejuvenate,
    step,
    weigh,
)
from pfbr.inference.adaptive.static.target import Target

__all__ = ["Adaptive", "AdaptiveState", "Info", "Move", "Target", "init", "make_room", "rejuvenate", "step", "weigh"]
