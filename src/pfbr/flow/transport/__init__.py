"""A map from the posterior before an observation to the one after it, exact in the directions that matter most."""
