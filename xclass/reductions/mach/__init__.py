"""Reduce many classes to R problems of B buckets each, into which hash functions put the classes (MACH)."""
