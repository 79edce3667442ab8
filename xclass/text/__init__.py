"""Read VW text and parse it into batches."""
