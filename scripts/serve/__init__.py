"""Measure and try servers."""
