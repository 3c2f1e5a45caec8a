"""Is it right: scores, kernels, and the truth to compare with."""
