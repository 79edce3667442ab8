"""Search for the options with which a learner makes the fewest errors: `xclass tune`."""
