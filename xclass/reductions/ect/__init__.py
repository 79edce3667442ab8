"""Choose classes by error-correcting tournaments."""
