"""Learn lists of labels by scorers with confidences, from candidates of an index and of nearest examples."""
