"""LOMTree."""
