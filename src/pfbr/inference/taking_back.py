"""Whether an earlier observation can be taken back by its value; where not, the error says what can be done."""

from pfbr.errors import InputError
from pfbr.inference.method import Method
from pfbr.models.base import Model, StateSpaceModel


def check_downdate(model: Model, method: Method, stage: int) -> None:
    if isinstance(model, StateSpaceModel):
        raise InputError(
            "an earlier observation can be taken back by its value only where the unknown does not move; "
            "`retract()` takes back the last one, `retract(number=…)` one of the last."
        )
    reason = getattr(method, "cannot_downdate", lambda: f"{type(method).__name__} cannot")()
    if reason is not None:
        raise InputError(f"{reason} take back an earlier observation: call `retract()` for the last one.")
    if stage == 0:
        raise InputError("this session has nothing to retract: there has been no observation yet.")
