"""What a page is called: by its title and first heading, and by its address."""

import re
from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import unquote, urlsplit

from dedup.page.words import SIGNS

__all__ = ["address_words", "place", "shared"]

_WORD = re.compile(r"[^\W_]{3,}")
#: A part of a path that names a version.
_VERSION = re.compile(
    r"/(?:v?\d++\.[\dx][\w.-]*+|current|latest|stable|master|main|dev|nightly)(?=/)", re.IGNORECASE
)
_SUFFIX = re.compile(r"\.[a-z]{2,5}$")
#: Words of an address that are looked at, at most.
MAX_WORDS = 32


@lru_cache(maxsize=16)
def address_words(url: str) -> tuple[str, ...]:
    """The words of the last part of a URL's path; folders are shared by many pages, and numbers say little.

    >>> address_words("http://example.org/39/Mock-Source.html"), address_words("http://example.org/2026/3/")
    (('mock', 'source'), ())
    """
    try:
        last = unquote(urlsplit(url).path).rstrip("/").rpartition("/")[2].casefold()
    except ValueError:
        return ()
    words = _WORD.findall(_SUFFIX.sub("", last))[:MAX_WORDS]
    return tuple(word for word in words if not word.isdigit())


def shared(address: Iterable[str], heading: Iterable[str]) -> tuple[str, ...]:
    """The words of an address that the page's heading says, too, however it spaces them.

    By these words, the page and its site call it the same.

    >>> shared(("storm097", "released"), ("storm", "0", "9", "7", "released"))
    ('storm097', 'released')
    """
    spelled = "".join(word for word in heading if word[0] not in SIGNS)
    return tuple(word for word in address if word in spelled)


def place(url: str) -> str:
    """The path of a URL, which a mirror on another host has, too, and with any version in it another version.

    It is "" for a path that is common to many pages: one with a query, or one that ends without a word.

    >>> place("http://example.org/docs/2.7.1/Bolts.html"), place("https://old.example.org/docs/latest/Bolts.html")
    ('/docs/*/Bolts.html', '/docs/*/Bolts.html')
    >>> place("http://example.org/p/17"), place("http://example.org/view?id=17")
    ('', '')
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return _VERSION.sub("/*", parts.path) if address_words(url) and not parts.query else ""
