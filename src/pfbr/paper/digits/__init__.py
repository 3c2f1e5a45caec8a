"""The sixes and eights of MNIST, small deformations of them, and the 1.6 million feature vectors made of these."""

from pfbr.paper.digits.images import Digits, load_digits
from pfbr.paper.digits.prepared import PreparedDigits, StreamSettings, open_stream, prepare
from pfbr.paper.digits.reduction import Reduction, shipped_reduction

__all__ = [
    "Digits",
    "PreparedDigits",
    "Reduction",
    "StreamSettings",
    "load_digits",
    "open_stream",
    "prepare",
    "shipped_reduction",
]
