"""Random problems in any dimension, for an operator that is to serve models it has never seen."""
