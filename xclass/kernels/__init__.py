"""The compiler of kernels and functions that kernels share."""
