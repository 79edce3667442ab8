"""Reduce learning many classes to binary problems: a folder per reduction; `core` and `clusters` are shared."""
