"""What goes wrong, in one sentence, and the exit code that the shell sees."""


class AdacError(Exception):
    """A failure that is explained in one sentence; never shown as a traceback."""

    exit_code = 1


class UserError(AdacError):
    """Bad input: an unknown name, a setting out of range, a missing extra, a foreign folder."""

    exit_code = 2


class RunError(AdacError):
    """A failure while running: a non-finite observation, a full disk."""


def missing_extra(what: str, extra: str) -> UserError:
    """The one sentence for a library that is not installed."""
    return UserError(f"{what} needs the extra '{extra}': pip install 'adac[{extra}]'")
