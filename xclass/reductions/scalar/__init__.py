"""The binary learner alone."""
