"""Learn real-valued labels with the binary learner alone."""
