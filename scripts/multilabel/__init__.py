"""Commands that measure `--multilabel` and its peers on lists of labels."""
