"""Commands that draw the figures of the papers."""
