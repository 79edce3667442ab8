"""Declare options and decide their values."""
