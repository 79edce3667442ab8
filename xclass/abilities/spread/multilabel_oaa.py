"""Spread one-against-all for lists of labels as that for one label; the whole counts the labels itself."""

from .oaa import combine, pass_rounds, restore_scorers, rounds, scorers_state, units

part_state = scorers_state
join = restore_part = restore_scorers

__all__ = ["combine", "join", "part_state", "pass_rounds", "restore_part", "rounds", "units"]
