"""Say how much tests try: more where SLOW is set."""

import os


def tries(most: int) -> int:
    """Return how many examples of a property to try: `most` with SLOW=1, otherwise one in four of them."""
    return most if os.environ.get("SLOW") else most // 4
