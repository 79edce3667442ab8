"""Describe one-against-all for lists of labels as that for one label."""

from .oaa import banner, vw_banner

__all__ = ["banner", "vw_banner"]
