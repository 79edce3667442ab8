"""The softmax tree."""
