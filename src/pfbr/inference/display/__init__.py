"""How posteriors, traces and forecasts show themselves: in a notebook, and as figures."""
