"""NumPyro functions as models."""
