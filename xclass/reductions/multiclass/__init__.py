"""Proposals by trees of probabilities and by an index, decided by scorers of classes (`--multiclass`)."""
