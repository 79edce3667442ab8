"""A tree of labels in random order."""
