"""The map of one observation."""
