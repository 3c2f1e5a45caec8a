"""Velocities: the paper's, the training-free one, and the one learned on top of it."""
