"""Learn and predict on the workers of a Ray cluster."""
