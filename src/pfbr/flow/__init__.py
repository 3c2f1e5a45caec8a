"""Where points go: likelihoods, velocities, and how they are integrated."""
