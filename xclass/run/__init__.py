"""A run of the command, from the first byte to the model file."""
