"""The binary learner that all reductions share, and the update rules of others."""
