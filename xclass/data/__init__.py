"""Batches of examples and what is made of their features and labels."""
