"""Learn the parts of a model in the workers of a cluster, from the same examples."""
