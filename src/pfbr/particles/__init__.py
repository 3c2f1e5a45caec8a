"""A set of points: weights, resampling, whitening, quasi-Monte Carlo, densities."""
