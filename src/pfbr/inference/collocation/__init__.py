"""The collocation flow: the continuity equation solved on the particles."""
