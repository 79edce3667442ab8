"""Merge models that learned apart."""
