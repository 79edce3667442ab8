"""Show the weights of one-against-all for lists of labels as those for one label."""

from .oaa import table_view

__all__ = ["table_view"]
