"""Cluster classes by the features of their examples."""
