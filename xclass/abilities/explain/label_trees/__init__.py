"""Explain the predictions of conditional probability trees."""
