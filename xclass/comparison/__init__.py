"""Compare the errors of runs over the same examples (`xclass compare`)."""
