"""Values made fit to be printed in a message, a log or a terminal, even if strangers chose them."""

from collections.abc import Iterable
from datetime import UTC, datetime
from html import escape

from dedup.page.urls import strip_user


def printable(text: str) -> str:
    """Returns a path, or another text of the user's own, on one line.

    >>> printable("a\\tb"), printable("Käse")
    ('a\\\\tb', 'Käse')
    """
    return text if text.isprintable() else ascii(text)[1:-1]


def inert(text: str, width: int = 500) -> str:
    r"""Returns a stranger's text as printable ASCII on one line, at most ``width`` characters; a URL loses its password.

    >>> inert("\x1b[2J[red]\u202e", 99), inert("http://me:secret@example.org/", 10)
    ('\\x1b[2J[red]\\u202e', 'http://...')
    """
    shown = strip_user(text)[: width + 1].encode("unicode_escape").decode("ascii")
    return shown if len(shown) <= width else shown[: width - 3] + "..."


def many(count: int, noun: str) -> str:
    """Returns a number with its noun, in the plural if need be.

    >>> many(1, "page"), many(1200, "page")
    ('1 page', '1,200 pages')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def table(rows: Iterable[tuple[str, object]]) -> str:
    """Returns names and values as a table in HTML, as notebooks show it.

    >>> table([("status", "new"), ("of", "<b>")])
    '<table><tr><th>status</th><td><code>new</code></td></tr><tr><th>of</th><td><code>&lt;b&gt;</code></td></tr></table>'
    """
    cells = (
        f"<tr><th>{escape(name)}</th><td><code>{escape(str(value))}</code></td></tr>" for name, value in rows
    )
    return f"<table>{''.join(cells)}</table>"


def clock(time: float | str, seconds: bool = False) -> str:
    """Returns a time in UTC, to the minute or to the second; it is given in seconds since 1970, or in ISO 8601.

    >>> clock(1_000_000_000), clock("2026-11-03T10:00:59.123+00:00", seconds=True)
    ('2001-09-09 01:46', '2026-11-03 10:00:59')
    """
    text = time if isinstance(time, str) else datetime.fromtimestamp(time, UTC).isoformat()
    return text[: 19 if seconds else 16].replace("T", " ")


def redact(address: str) -> str:
    """Returns the address of a server without user, password and options.

    >>> redact("redis://user:secret@host:6379/0?password=secret"), redact(":secret@host")
    ('redis://host:6379/0', 'host')
    """
    before, at, after = address.rpartition("@")
    scheme, slashes, _ = before.partition("://")
    shown = f"{scheme}{slashes}{after}" if at and slashes else after
    return shown.partition("?")[0]


def octets(octets: bytes) -> str:
    """Bytes, such as a key of Redis, on one line.

    >>> octets(b"i:\\xff")
    'i:\\\\xff'
    """
    return repr(octets)[2:-1]
