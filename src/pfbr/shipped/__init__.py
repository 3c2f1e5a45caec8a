"""Operators that come with the package."""

from pfbr.shipped.catalogue import COMMANDS, shipped

__all__ = ["COMMANDS", "shipped"]
