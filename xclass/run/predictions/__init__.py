"""Write predictions."""
