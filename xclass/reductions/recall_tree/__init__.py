"""The recall tree."""
