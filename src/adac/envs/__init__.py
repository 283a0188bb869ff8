"""The nineteen tasks of the paper, registered with Gymnasium on import."""


def register() -> None:
    """Register our tasks under `adac/`; safe to call again."""
