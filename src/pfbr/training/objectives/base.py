"""What every objective offers: a loss on a problem that it draws."""

from typing import ClassVar, Protocol, runtime_checkable

from pfbr.inference.operator import Operator
from pfbr.training.settings import TrainingSettings
from pfbr.typing import Key, Scalar


@runtime_checkable
class Objective(Protocol):
    """Something that draws what one step learns from, and says how wrong an operator is on it; a tree of arrays."""

    name: ClassVar[str]
    settings: TrainingSettings

    def loss(self, key: Key, operator: Operator) -> Scalar: ...
