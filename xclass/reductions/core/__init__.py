"""What every reduction is made of."""
