"""Learn, predict and read and write models from Python programs."""
