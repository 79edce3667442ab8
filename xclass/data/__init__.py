"""Represent batches of examples and transform their features and labels."""
