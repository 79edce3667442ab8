"""Compile kernels, and provide the functions that kernels share."""
