"""Merge the learners of conditional probability trees."""
