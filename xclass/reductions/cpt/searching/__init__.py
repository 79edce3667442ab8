"""Searches for candidates that need not find the most probable classes, and the rows of the index of features."""
