"""Execute a run of the command, from the first byte of the data to the model file."""
