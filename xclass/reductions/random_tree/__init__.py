"""Route examples down a balanced tree whose leaves are the labels in random order."""
