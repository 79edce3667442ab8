"""Declare options and resolve their values."""
