"""Write the results of a run for programs: the summary, the learning curve, errors by class, and the wrong lines."""
