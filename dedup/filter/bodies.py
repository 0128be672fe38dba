"""Remembers bodies: a page whose bytes were met before is not read again.

What a page gives depends on its bytes, on how they are decoded and read, and on its address.  Links are resolved against
the folder of that, and the words of its last part are looked at anew here.  But a link that is a query alone, and a few
more, are resolved against the whole address: a page that may have one is read again wherever it is met.
"""

import re
from secrets import randbits
from typing import NamedTuple

from msgspec import Struct
from xxhash import xxh3_128

from dedup.fingerprint.detector import Detector
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.latest import Latest
from dedup.page.heading import address_words, place, shared
from dedup.page.html import Page
from dedup.page.urls import folder, usable_base

#: How many bodies are remembered, in about 2 kB each beside what the detector remembers of most of them anyway.
REMEMBERED = 1024
#: Words of a heading that are remembered: a page that has more is read again.
MAX_HEADING = 64
#: Encodings in which a byte below 128 is the character of ASCII, and nothing else is.
ENCODINGS = frozenset({"ascii", "utf-8", "cp1252"})
#: Where a value may begin with a question mark, if what is stripped before it is left out; it may be written as a
#: character reference, too.
_QUERY = re.compile(rb"=[\x00-\x20\"'\x80-\xff]*[?&]")
_BASE = re.compile(rb"<[bB][aA][sS][eE]")


class Body(NamedTuple):
    """The bytes of a page, and how they are read."""

    octets: bytes
    encoding: str  #: the codec of Python
    kind: str  #: "html", "text" or "json"


class Content(Struct):
    """What a body gave."""

    url: str
    page: Page  #: without its tokens
    fingerprint: Fingerprint
    #: Whether its links were given to `Unreached.leave`, and need not be once more.
    are_links_left: bool = False


class Bodies:
    """The bodies that were read last."""

    def __init__(self, detector: Detector) -> None:
        self._detector = detector
        self._seed = randbits(64)  # so that nobody can make two bodies that look the same
        self._known = Latest[int, Content](REMEMBERED)

    def key(self, body: Body, url: str) -> int | None:
        """Returns a key for a body and the folder of its address; None if the body is not to be remembered."""
        if body.encoding not in ENCODINGS:
            return None
        digest = xxh3_128(seed=self._seed)
        told = body.kind, body.encoding, str(len(body.octets)), folder(usable_base(url))
        digest.update("\0".join(told).encode("utf-8", "surrogatepass") + b"\0")
        digest.update(body.octets)
        return digest.intdigest()

    def find(self, key: int, body: Body, url: str) -> Content | None:
        """Returns what is known of the page at a URL with this body; None if the body was not met before."""
        known = self._known.get(key)
        if known is None or (url != known.url and depends_on_name(body)):
            return None
        self._known.move_to_end(key)
        if url != known.url:
            page = named(known.page, url)
            known.url, known.page = url, page
            known.fingerprint = self._detector.elsewhere(known.fingerprint, page)
        return known

    def add(self, key: int, url: str, page: Page, fingerprint: Fingerprint) -> Content | None:
        """Remembers what a body gave, unless that depends on more than the folder, or can't be judged anyway."""
        # It may have done so by a link to nothing.
        named_itself = without_query(page.canonical) == without_query(url)
        if fingerprint.reason is not None or page.body or page.data or named_itself:
            return None
        if len(page.heading) > MAX_HEADING:
            return None
        known = Content(url, page._replace(tokens=[], chrome=(), markup=""), fingerprint)
        self._known[key] = known
        return known


def depends_on_name(body: Body) -> bool:
    """Returns whether links of a page may depend on the last part of its address; True if that can't be told.

    >>> [depends_on_name(Body(html, "utf-8", "html"))
    ...  for html in (b"<a href='/b?x=1'>", b"<a href='?x=1'>", b"<a href=&quest;x>", b"<base href=..>")]
    [False, True, True, True]
    """
    octets = body.octets
    return bool(_QUERY.search(octets) or _BASE.search(octets)) or b"\0" in octets


def named(page: Page, url: str) -> Page:
    """Returns the page as it would be read at another URL of the same folder."""
    return page._replace(names=shared(address_words(url), page.heading), place=place(url))


def without_query(url: str) -> str:
    """Returns a URL without its query and its fragment."""
    return url.partition("#")[0].partition("?")[0]
