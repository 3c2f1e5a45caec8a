"""The paper's experiments: settings, and a run that leaves records and can be killed."""
