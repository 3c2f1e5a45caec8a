"""Parameters beside a state: an outer cloud of parameters, each with a small particle filter of its own."""
