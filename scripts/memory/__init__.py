"""Measure how the size of tables, their layout and their place in memory decide errors and times."""
