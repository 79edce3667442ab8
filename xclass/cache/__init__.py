"""Keep parsed examples in a file."""
