"""The library: learners and models for Python programs."""
