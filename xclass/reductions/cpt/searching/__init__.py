"""Searches for the most probable classes of a tree, and the rows of the index of features."""
