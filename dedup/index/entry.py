"""A page as an index files it, which pages it is compared with, and which of them a verdict names."""

import hashlib
import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from dedup.fingerprint.fingerprint import RARE, UNCALLED, Called
from dedup.page.siblings import name_one_page
from dedup.page.urls import strip_user

if TYPE_CHECKING:
    from tldextract import TLDExtract

#: Begins every page id that is escaped.  Unicode keeps this character out of texts.
ESCAPED = "\uffff"
_ESCAPES = re.compile(r"\\(?:\\|u(d[89a-f][0-9a-f]{2}))")


#: The rare shingles of a page that was made by hand: none.
NONE_RARE = (0,) * RARE


class Entry(NamedTuple):
    """A page as it is filed."""

    page_id: str  #: as it is filed (see `storable_id`)
    url: str
    simhash: int
    scope: int  #: see `scope_mask`; what is handed over with the page is mixed in
    digest: int
    bands: tuple[int, ...]  #: () where pages are found by their simhashes
    sketch: bytes  #: of its own part, or of the whole page if the chrome of hosts counts
    filed: int  #: when, in seconds since 1970
    run: str  #: by which run, 32 hex digits
    markup: int = 0  #: the digest of its markup
    called: Called = UNCALLED  #: what its heading and its address call it
    rare: tuple[int, ...] = NONE_RARE  #: by which of its rare shingles it is found: see `rare_keys`

    @property
    def content(self) -> tuple[int, int, int]:
        """What pages with equal tokens have in common, if what is handed over with them is equal, too."""
        return self.digest, self.simhash, self.scope

    def is_copy(self, other: "Entry") -> bool:
        """Returns whether all that can be seen of another page is the same, and what is handed over with it."""
        return self.content == other.content and self.markup == other.markup

    def equals(self, other: "Entry") -> bool:
        """Returns whether another page is equal: its markup is, or its tokens are and both addresses name one page."""
        return self.content == other.content and (
            self.markup == other.markup or name_one_page(self.url, other.url)
        )

    @property
    def keys(self) -> tuple[int, ...]:
        """The keys that the tables hold, by column.  The scope is mixed in: pages of one scope keep their
        distances, and pages of different scopes are as far apart as unrelated ones."""
        keys = self.digest, self.markup, *self.rare, *(self.bands or (self.simhash,))
        return tuple([key ^ self.scope for key in keys]) if self.scope else keys

    def apart(self, other: "Entry") -> int:
        """In how many bits the keys of two pages differ, those that differ least."""
        own, others = (entry.bands or (entry.simhash,) for entry in (self, other))
        return min((one ^ two).bit_count() for one, two in zip(own, others, strict=True))

    def shares(self, other: "Entry") -> int:
        """Returns how many of the rare shingles by which they are found two pages share."""
        return sum(one == two for one, two in zip(self.rare, other.rare, strict=True))


def rare_keys(least: tuple[int, ...], digest: int) -> tuple[int, ...]:
    """Returns the keys of rare shingles: where there is none, 0, a key that only pages of the same content have.

    >>> rare_keys((7, 0, 9, 0), digest=64)
    (7, 66, 9, 68)
    """
    return tuple([key or digest ^ place for place, key in enumerate(least, 1)])


@cache
def _splitter() -> "TLDExtract":
    """Returns the snapshot that tldextract ships: it looks nothing up, and every crawler gets the same answer."""
    import tldextract  # brings `requests` with it, and only the scope "site" needs it

    return tldextract.TLDExtract(cache_dir=None, suffix_list_urls=())


@lru_cache(maxsize=1 << 12)
def _mask_of(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big")


def scope_mask(scope: str, url: str) -> int:
    """Returns a 64-bit number that pages share exactly when they are compared with each other.

    ``url`` is one that can be stored (see `storable_url`).

    >>> scope_mask("all", "http://a.example.org/")
    0
    >>> a, b = "http://a.example.org:8080/x", "http://b.example.org/y"
    >>> scope_mask("site", a) == scope_mask("site", b), scope_mask("host", a) == scope_mask("host", b)
    (True, False)
    """
    if scope == "all":
        return 0
    try:
        host = urlsplit(url).netloc.rpartition("@")[2].lower()
    except ValueError:
        host = url
    if scope == "site":
        host = _splitter()(host).top_domain_under_public_suffix or host
    return _mask_of(host)


def storable_id(page_id: str) -> str:
    r"""Returns a page id as it is filed: the same one, unless it has lone surrogates, which UTF-8 lacks, or looks escaped.

    Different page ids stay different.  An index does this once, before a store sees the page id.

    >>> storable_id("0a1b"), storable_id("a\\\ud800"), storable_id("\uffff")
    ('0a1b', '\uffffa\\\\\\ud800', '\uffff\uffff')
    """
    is_text = page_id.encode("utf-8", "replace").decode() == page_id
    if is_text and not page_id.startswith(ESCAPED):
        return page_id
    return ESCAPED + page_id.replace("\\", "\\\\").encode("utf-8", "backslashreplace").decode()


def original_id(filed: str) -> str:
    r"""Returns the page id that is filed so.

    >>> original_id("0a1b"), original_id(storable_id("a\\\ud800")) == "a\\\ud800"
    ('0a1b', True)
    """
    if not filed.startswith(ESCAPED):
        return filed
    page_id = _ESCAPES.sub(lambda found: chr(int(found[1], 16)) if found[1] else "\\", filed[1:])
    return page_id if storable_id(page_id) == filed else filed  # an earlier version left some as they were


def storable_url(url: str) -> str:
    r"""Returns a URL as it is filed: without user and password, and with a question mark for each lone surrogate.

    >>> storable_url("http://me:secret@example.org/\ud800")
    'http://example.org/?'
    """
    return strip_user(url).encode("utf-8", "replace").decode()


def storable(entry: Entry) -> Entry:
    """Returns a page with a page id and a URL that can be stored."""
    page_id, url = storable_id(original_id(entry.page_id)), storable_url(entry.url)
    if page_id == entry.page_id and url == entry.url:
        return entry
    return entry._replace(page_id=page_id, url=url)
