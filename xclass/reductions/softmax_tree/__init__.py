"""Learn a softmax tree: sparse routers that lead to a softmax over few classes."""
