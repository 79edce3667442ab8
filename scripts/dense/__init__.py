"""Measure how dense rows, such as embeddings, are learned."""
