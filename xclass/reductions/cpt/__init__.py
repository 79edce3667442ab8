"""The conditional probability tree."""
