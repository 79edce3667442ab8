"""The reductions: one folder each, what they share in `core` and `clusters`, all of them in `registry`."""
