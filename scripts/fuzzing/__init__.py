"""Parts of the campaigns: a module for each kind of input, and those that run cases and report failures."""
