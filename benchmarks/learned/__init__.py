"""One map for every model: how it is trained, and how it does on kinds of likelihoods that it never saw."""
