"""Unknowns that move: predict, then weigh, flow or temper, with a predictive density from the cloud alone."""
