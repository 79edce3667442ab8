"""Show weights and trees as text."""
