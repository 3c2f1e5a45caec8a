"""Methods side by side: evaluation, comparison, calibration, timing."""
