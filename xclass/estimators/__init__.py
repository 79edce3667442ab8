"""Hold what estimators for other libraries share: labels of any type, and predictions of them."""
