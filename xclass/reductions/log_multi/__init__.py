"""Reduce multiclass classification to a tree of routers that is built online (LOMTree)."""
