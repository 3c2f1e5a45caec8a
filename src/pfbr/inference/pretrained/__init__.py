"""Operators that come with the package."""

from pfbr.inference.pretrained.catalogue import COMMANDS, shipped

__all__ = ["COMMANDS", "shipped"]
