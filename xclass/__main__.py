"""`python -m xclass` is the command `xclass`."""

from .cli import main

if __name__ == "__main__":
    main()
