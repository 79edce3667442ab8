"""Commands that measure error, time and memory."""
