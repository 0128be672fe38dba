"""Texts that strangers chose, made fit to be printed: in a message, a log, a terminal."""

from dedup.page.urls import strip_user

__all__ = ["inert", "many", "printable"]


def printable(text: str) -> str:
    """A path, or other text, on one line.

    >>> printable("a\\tb"), printable("Käse")
    ('a\\\\tb', 'Käse')
    """
    return text if text.isprintable() else ascii(text)[1:-1]


def inert(text: str, width: int = 500) -> str:
    r"""A text as printable ASCII on one line, cut to ``width`` characters; a URL without user and password.

    >>> inert("\x1b[2J[red]\u202e", 99), inert("http://me:secret@example.org/", 10)
    ('\\x1b[2J[red]\\u202e', 'http://...')
    """
    shown = strip_user(text)[: width + 1].encode("unicode_escape").decode("ascii")
    return shown if len(shown) <= width else shown[: width - 3] + "..."


def many(count: int, noun: str) -> str:
    """A number of things.

    >>> many(1, "page"), many(1_000, "page")
    ('1 page', '1,000 pages')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
