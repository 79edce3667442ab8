"""Show the progress and the summary of a run."""
