"""Texts that strangers chose, made fit for a log or a terminal."""

from dedup.urls import strip_user

__all__ = ["inert"]


def inert(text: str, width: int = 500) -> str:
    r"""A text as printable ASCII on one line, cut to ``width`` characters; a URL without user and password.

    >>> inert("\x1b[2J[red]\u202e", 99), inert("http://me:secret@example.org/", 10)
    ('\\x1b[2J[red]\\u202e', 'http://...')
    """
    shown = strip_user(text)[: width + 1].encode("unicode_escape").decode("ascii")
    return shown if len(shown) <= width else shown[: width - 3] + "..."
