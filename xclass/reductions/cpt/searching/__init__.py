"""Searches of a conditional probability tree that need not find the most probable classes."""
