"""What a page is called: by its title and first heading, and by its address."""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from urllib.parse import unquote, urlsplit

from dedup.page.words import SIGNS

_WORD = re.compile(r"[^\W_]{3,}|\d+")
#: A part of a path that names a version.
_VERSION = re.compile(
    r"/(?:v?\d++\.[\dx][\w.-]*+|current|latest|stable|master|main|dev|nightly)(?=/)", re.IGNORECASE
)
_SUFFIX = re.compile(r"\.[a-z]{2,5}$")
#: Words of an address that are looked at, at most.
MAX_WORDS = 32


@lru_cache(maxsize=16)
def address_words(url: str) -> tuple[str, ...]:
    """Returns the words and numbers of the last part of a URL's path; folders are shared by many pages.

    >>> address_words("http://example.org/39/Mock-Source.html"), address_words("http://example.org/2026/3/")
    (('mock', 'source'), ('3',))
    """
    try:
        last = unquote(urlsplit(url).path).rstrip("/").rpartition("/")[2].casefold()
    except ValueError:
        return ()
    return tuple(_WORD.findall(_SUFFIX.sub("", last))[:MAX_WORDS])


def shared(address: Iterable[str], heading: Sequence[str]) -> tuple[str, ...]:
    """Returns the words of an address that the page's heading says, too, however it spaces them, and the numbers.

    By these, the page and its site call it the same.

    >>> shared(("storm097", "released"), ("storm", "0", "9", "7", "released"))
    ('storm097', 'released')
    >>> shared(("2012", "1"), ("official", "opinion", "2012", "12"))
    ('2012',)
    """
    words = set(heading)
    spelled = "".join(word for word in heading if word[0] not in SIGNS)
    return tuple(word for word in address if word in words or (word in spelled and not word.isdigit()))


def place(url: str) -> str:
    """Returns the path of a URL, which a mirror on another host has, too, and with any version in it another version.

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
    has_word = not all(word.isdigit() for word in address_words(url))
    return _VERSION.sub("/*", parts.path) if has_word and not parts.query else ""
