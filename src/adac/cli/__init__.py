"""The `adac` command."""
