"""What a run shows: progress, table, summary."""
