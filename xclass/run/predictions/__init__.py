"""Write predictions to files."""
