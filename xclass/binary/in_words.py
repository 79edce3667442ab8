"""Describe weight tables and update rules in plain words, for the lines at the start of a run."""

from __future__ import annotations

from .update_rule import BinaryOptions


def size(number: float) -> str:
    """Return a number of bytes as text, such as `640 kB` or `1,152 MB`."""
    if number < 1 << 20:
        return f"{number / 2**10:.0f} kB"
    return f"{number / 2**20:,.0f} MB"


def table(bits: int, slot_bytes: int) -> str:
    """Return the line about a table of 2**bits weights, each of which takes `slot_bytes` with its sums."""
    return f"Weights: 2^{bits} of {slot_bytes} bytes (-b {bits}), at most {size(slot_bytes << bits)}"


def growing(words: int, bits: int, most: int) -> str:
    """Return the line about tables of so many tagged words, which may grow to `most` bytes, 0 if they may not."""
    memory = f"{size(4 * words)}, growing to at most {size(most)}" if most else f"at most {size(4 * words)}"
    return f"Weights: {words:,} of 4 bytes (-b {bits}), {memory}"


def loss(options: BinaryOptions) -> str:
    quantile = f" {options.quantile_tau:g}" if options.loss_function == "quantile" else ""
    return f"Loss: {options.loss_function}{quantile}"


def learning(options: BinaryOptions) -> list[str]:
    """Return the lines about learning rate, loss and regularisation of `gd`, for resolved options."""
    rules = zip(("AdaGrad", "normalized features", "importance-aware steps"), options.rules(), strict=True)
    names = ", ".join(name for name, chosen in rules if chosen)
    lines = [f"Learning rate: {options.learning_rate:g} ({names or 'plain gradient descent'})"]
    power, start = options.power_t, options.initial_t
    if not options.rules()[0]:
        if power != 0:
            lines.append(f"Decay: the rate falls with t^{-power:g}, where t counts the examples from {start:g}")
    elif power != 0.5 or start != 0:
        lines.append(f"Decay: steps fall with G^{-power:g}; G sums squared gradients, from {start:g}")
    lines.append(loss(options))
    penalties = [f"{name} {value:g}" for name, value in (("L1", options.l1), ("L2", options.l2)) if value]
    return [*lines, *([f"Regularization: {', '.join(penalties)}"] if penalties else [])]
