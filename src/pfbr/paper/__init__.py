"""The paper's experiments, each by its name: settings and wiring, records in between, and a page."""
