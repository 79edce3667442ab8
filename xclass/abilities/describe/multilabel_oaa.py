"""Describe one-against-all for lists of labels as that for one label."""

from .oaa import banner, table_view, vw_banner

__all__ = ["banner", "table_view", "vw_banner"]
