"""`python -m adac` is `adac`."""

from adac.cli.main import main

main()
