"""Training of the one map that serves every model and every number of unknowns."""
