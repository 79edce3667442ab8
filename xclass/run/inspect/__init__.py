"""Write models, weights and trees as text."""
