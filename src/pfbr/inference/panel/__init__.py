"""Thousands of independent streams of one model, each with a posterior of its own."""
