"""Parts of scripts/fuzz.py: one module for each kind of input, and those that run cases and report failures."""
