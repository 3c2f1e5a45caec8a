"""Models that cannot work, each with one fault, by kind of fault; and unusual ones that can."""

from tests.attack.model_kinds import GROUP
from tests.attack.model_numbers import numbers
from tests.attack.model_returns import dims, raising, wrong_returns
from tests.attack.model_right import right
from tests.attack.model_signatures import later, named, signatures
from tests.attack.model_tracing import tracing

KINDS = (dims, wrong_returns, raising, numbers, tracing, signatures, named, later, right)
CASES = [case for kind in KINDS for case in kind()]

__all__ = ["CASES", "GROUP"]
