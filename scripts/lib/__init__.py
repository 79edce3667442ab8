"""Provide code that several commands of scripts/ share."""
