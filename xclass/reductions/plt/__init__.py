"""Learn lists of labels by a tree of probabilities: `--plt K`."""
