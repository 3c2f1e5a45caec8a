"""Operators that come with the package."""

from pfbr.inference.pretrained.catalogue import NAMES, pretrained

__all__ = ["NAMES", "pretrained"]
