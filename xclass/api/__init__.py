"""Let Python programs learn, predict, and save and load models."""
