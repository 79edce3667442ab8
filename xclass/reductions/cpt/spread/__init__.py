"""Spread the trees, the scorers and the index over processes."""
