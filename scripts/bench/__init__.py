"""Commands that measure error, time and memory, and that look for options."""
