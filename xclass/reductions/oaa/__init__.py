"""Reduce multiclass classification to one binary problem per class (one-against-all)."""
