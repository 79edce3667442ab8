"""xclass: online learning of one of very many classes, in logarithmic time, from a command line."""

__version__ = "0.1.0"
