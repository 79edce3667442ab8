"""Commands that measure error, time and memory, and that search for options."""
