"""Measure, compare and test the package by commands, run in the project's folder as `python -m scripts.FOLDER.NAME`."""
