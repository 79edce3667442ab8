"""Reduce multiclass classification to a tree of routers and one-against-some scorers (the recall tree)."""
