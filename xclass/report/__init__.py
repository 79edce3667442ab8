"""Describe a trained model, and its errors on test data, as one HTML page (`xclass report`)."""
