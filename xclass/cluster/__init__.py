"""Spread a run over the workers of a Ray cluster."""
