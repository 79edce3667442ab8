"""Error-correcting tournaments."""
