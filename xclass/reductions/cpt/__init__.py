"""Estimate class probabilities with a conditional probability tree."""
