"""Read data formats other than VW text: fastText, LIBSVM, extreme classification, CSV and JSON lines."""
