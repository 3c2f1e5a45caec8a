"""Is the posterior right: ranks of simulated truths."""
