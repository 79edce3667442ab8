"""Complete command lines in bash, zsh and fish by click's scripts.

A shell loads the script with this line, where `zsh_source` and `fish_source` are the words of the other shells:

    eval "$(_XCLASS_COMPLETE=bash_source xclass)"
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import click
from click.shell_completion import CompletionItem, shell_complete

from ..options.declare import Option

VARIABLE = "_XCLASS_COMPLETE"  # set by the shell when it asks for completions


def is_asked_for() -> bool:
    """Return whether a shell has started the command to obtain completions of a command line."""
    return bool(os.environ.get(VARIABLE))


def complete(command: click.Command) -> int:
    """Print the completions, or the script, that the shell requests and return the exit status."""
    return shell_complete(command, {}, "xclass", VARIABLE, os.environ[VARIABLE])


def values_of(option: Option) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Return a function that lists the possible values of an option that begin with the typed text: words and files."""
    words = option.choices or tuple(word for word in (option.metavar or "").split("|") if word.islower())
    return completer(words, files=bool(option.reads or option.writes))


def completer(
    words: Sequence[str], files: bool = False
) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Return a function that lists the words that begin with the typed text, and also files if `files` is set."""

    def complete_word(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        items = [CompletionItem(word) for word in words if word.startswith(incomplete)]
        return [*items, CompletionItem(incomplete, type="file")] if files else items

    return complete_word
