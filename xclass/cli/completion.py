"""Complete command lines in bash, zsh and fish, by click's own scripts.

eval "$(_XCLASS_COMPLETE=bash_source xclass)"      # zsh_source, fish_source
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import click
from click.shell_completion import CompletionItem, shell_complete

from ..options.declare import Option

VARIABLE = "_XCLASS_COMPLETE"  # set by the shell when it asks for completions


def is_asked_for() -> bool:
    """Tell whether a shell runs the command to learn how a line could go on."""
    return bool(os.environ.get(VARIABLE))


def complete(command: click.Command) -> int:
    """Print what the shell asks for and return the exit status."""
    return shell_complete(command, {}, "xclass", VARIABLE, os.environ[VARIABLE])


def values_of(option: Option) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Return a function that lists the values of an option that begin with what was typed: words and files."""
    words = option.choices or tuple(word for word in (option.metavar or "").split("|") if word.islower())
    return completer(words, files=(option.metavar or "").endswith("FILE"))


def completer(
    words: Sequence[str], files: bool = False
) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Return a function that lists the words that begin with what was typed, and files where `files` is set."""

    def listed(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        found = [CompletionItem(word) for word in words if word.startswith(incomplete)]
        return [*found, CompletionItem(incomplete, type="file")] if files else found

    return listed
