"""Measure how texts are read: raw texts from packages, and errors beside those of other programs."""
