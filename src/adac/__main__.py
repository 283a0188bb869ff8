"""`python -m adac` is `adac`."""

from adac.cli import main

main()
