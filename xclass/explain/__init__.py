"""Explain predictions to users: records with names, and text."""
