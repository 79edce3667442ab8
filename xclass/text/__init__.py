"""Read and parse VW text."""
