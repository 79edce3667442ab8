"""Measure runs on a Ray cluster."""
