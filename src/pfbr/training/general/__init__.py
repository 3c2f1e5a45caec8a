"""Training of the one operator that serves every model and every number of unknowns."""
