"""Provide what every reduction is built from: base class, spec, batch tasks, probabilities and routers."""
