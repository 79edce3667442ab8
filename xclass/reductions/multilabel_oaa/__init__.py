"""Learn one scorer per label for examples with lists of labels."""
