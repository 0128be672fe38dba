"""Detector: options checked once; page -> Fingerprint; two Fingerprints -> Comparison.

The verdict in one line: a near-duplicate is a candidate by ``method`` **and** has at least
``min_resemblance`` in common by the sketches of its shingles.  The method finds candidates cheaply; the
sketch of the six-token shingles, AltaVista's features, confirms.  Candidates are, by "simhash", pages within
``max_distance`` bits of simhash; by "minhash", pages that share a band of min-hashes; by "supershingle",
pages that share a megashingle (`dedup.fingerprint.methods`).
"""

import hashlib
from collections import OrderedDict
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from itertools import repeat
from typing import Any

import numpy as np

from dedup.errors import SettingsError
from dedup.fingerprint.features import Features
from dedup.fingerprint.methods import METHODS, Method
from dedup.fingerprint.plans import Plan
from dedup.fingerprint.shingles import Hashes, hash_tokens
from dedup.fingerprint.simhash import distance
from dedup.fingerprint.sketch import Sketcher
from dedup.page.html import Page, decode
from dedup.page.read import read
from dedup.settings import SETTINGS

__all__ = ["Comparison", "Detector", "Features", "Fingerprint"]

#: Changes whenever the same page would get another fingerprint; stored with every index.
SCHEME = 2
#: Fingerprints that a detector remembers, by the digest of their tokens (about 500 bytes each).
REMEMBERED = 4096


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What is kept of a page in order to judge it and others against it."""

    simhash: int | None  #: 64 bits; None when nothing could be made of the page
    sketch: bytes  #: ``slots * bits / 8`` bytes; empty when simhash is None
    tokens: int  #: words and URLs that were found
    links: int  #: different URLs among its HREFs
    reason: str | None = None  #: why it can't be judged: "short", or one of the reasons of `Page`
    digest: int = 0  #: 64 bits of BLAKE2b of the tokens; equal pages have equal digests
    bands: tuple[int, ...] = ()  #: 64 bits each: bands, or megashingles, where the method has them

    @classmethod
    def unjudged(cls, reason: str, tokens: int = 0, links: int = 0) -> "Fingerprint":
        """The fingerprint of a page of which nothing could be made.

        >>> Fingerprint.unjudged("binary")
        Fingerprint(simhash=None, sketch=b'', tokens=0, links=0, reason='binary', digest=0, bands=())
        """
        return cls(None, b"", tokens, links, reason)

    @property
    def keys(self) -> tuple[int, ...]:
        """What the page is filed under beside its digest: the keys of the method, or else the simhash."""
        return self.bands if self.bands or self.simhash is None else (self.simhash,)

    @property
    def hex(self) -> str | None:
        """The simhash as 16 hex digits."""
        return None if self.simhash is None else f"{self.simhash:016x}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """How near two pages are, and whether that makes them duplicates."""

    distance: int | None  #: bits in which the simhashes differ; None if a page has none
    resemblance: float | None  #: estimated share of common shingles, 0..1
    duplicate: bool


@dataclass(frozen=True)
class Detector:
    """Judges pages by the settings of the same names (see `dedup.settings`).

    Raises `SettingsError` for a value that is not allowed; no page makes its methods raise.

    >>> detector = Detector(min_tokens=5)
    >>> story = "<p>The crawler reads each page once and never follows the same page twice" + " or so" * 9
    >>> a, b = detector.fingerprint(story), detector.fingerprint(story.upper() + "<!-- 12:05 -->")
    >>> detector.compare(a, b)
    Comparison(distance=0, resemblance=1.0, duplicate=True)
    >>> detector.compare(a, detector.fingerprint("<p>Quite another page, about something else"))
    Comparison(distance=..., resemblance=0.0, duplicate=False)
    >>> detector.fingerprint("<p>Not found").reason
    'short'
    """

    max_distance: int = 6  #: k, in bits of 64
    min_resemblance: float = 0.75  #: 0 to 1; 0 = no second stage
    shingle_size: int = 6  #: w, tokens per shingle of the sketch
    min_tokens: int = 30  #: words that a page must have to be judged
    keep_urls: bool = True  #: whether the URLs of HREFs and IMGs are tokens
    hash_key: str = field(default="", repr=False)  #: a secret that makes fingerprints unforgeable
    method: str = "simhash"  #: "simhash", "minhash" or "supershingle"
    recall: float = 0.99  #: of method "minhash": share of pages of min_resemblance that the bands must find
    supershingle_size: int = 14  #: k, min-hashes per supershingle; 5 is Bing's variant
    megashingle_size: int = 2  #: supershingles of six that have to be equal; 4 is Bing's variant
    features: Features = field(default_factory=Features)

    def __post_init__(self) -> None:
        for each in fields(self):
            if each.name in SETTINGS:
                SETTINGS[each.name].check(getattr(self, each.name))
        if not isinstance(self.features, Features):
            raise SettingsError(name="features", value=self.features, allowed="a dedup.Features")
        _ = self.finder  # raises if it can't be made from these settings

    @cached_property
    def finder(self) -> Method:
        """The method that ``method`` names, by which candidates are found."""
        make, settings = METHODS[self.method]
        return make(*(getattr(self, name) for name in settings))

    @cached_property
    def sketcher(self) -> Sketcher:
        """The kind of sketch by which candidates are confirmed."""
        return Sketcher(self.features.slots, self.features.bits, self._secrets["sketch"])

    def plan(self, expected_pages: int, tables: int | None = None) -> Plan:
        """The tables in which a page is filed, ``tables`` of them if that is asked for.

        Raises `SettingsError` for a number of tables that is not possible.
        """
        return self.finder.plan(expected_pages, tables)

    @property
    def radius(self) -> int:
        """How far from a page's key its candidates may be, in bits."""
        return self.finder.radius

    @cached_property
    def _secrets(self) -> dict[str, int]:
        """Numbers that nobody can tell without ``hash_key``, one for each purpose that hashes serve."""
        secret = hashlib.blake2b(self.hash_key.encode(), digest_size=32).digest()
        purposes = ("check", "digest", "signature", "sketch", "tokens")
        keys = {purpose: _digest(purpose.encode(), secret) for purpose in purposes}
        return keys if self.hash_key else keys | {"tokens": 0}

    @cached_property
    def _recent(self) -> "_Recent":
        return _Recent()

    @property
    def parameters(self) -> dict[str, str]:
        """What an index is built with: fingerprints and verdicts of other parameters don't mix."""
        values: dict[str, Any] = {
            "scheme": SCHEME,
            "method": self.method,
            "min_resemblance": float(self.min_resemblance),
            "shingle_size": self.shingle_size,
            "min_tokens": self.min_tokens,
            "keep_urls": self.keep_urls,
            "hash_key": f"{self._secrets['check']:016x}",
            **{f"features.{name}": value for name, value in asdict(self.features).items()},
        }
        values |= self.finder.parameters
        return {name: str(value) for name, value in values.items()}

    def fingerprint(self, html: bytes | str, url: str = "", encoding: str | None = None) -> Fingerprint:
        """The fingerprint of a page's HTML; ``encoding`` is what its server said of it."""
        return self.fingerprint_page(read(decode(html, encoding), url, self.keep_urls))

    def fingerprint_page(self, page: Page) -> Fingerprint:
        """The fingerprint of a page's tokens; of a page equal to one seen before, nothing is computed."""
        if page.reason is not None:
            return Fingerprint.unjudged(page.reason, len(page.tokens), page.links)
        digest = _digest("\0".join(page.tokens).encode(), self._secrets["digest"].to_bytes(8, "big"))
        found = self._recent.get(digest) or self._compute(page, digest)
        self._recent.add(digest, found)
        return found if found.links == page.links else replace(found, links=page.links)

    def _compute(self, page: Page, digest: int) -> Fingerprint:
        hashes, words = self._hashes(page.tokens)
        if len(words) == 0:
            return Fingerprint.unjudged("short", len(page.tokens), page.links)
        shingles = self.features.shingles(hashes, words, self.shingle_size)
        return Fingerprint(
            self.features.simhash(hashes, words),
            self.sketcher.make(shingles),
            len(page.tokens),
            page.links,
            "short" if len(words) < self.min_tokens else None,
            digest,
            self.finder.bands(shingles, self._secrets["signature"]),
        )

    def _hashes(self, tokens: list[str]) -> tuple[Hashes, Hashes]:
        """Hashes of all tokens, and of the words among them."""
        hashes = hash_tokens(tokens, self._secrets["tokens"])
        if not self.keep_urls:
            return hashes, hashes
        is_url = np.fromiter(map(str.startswith, tokens, repeat("/")), np.bool_, len(tokens))
        return hashes, hashes[~is_url]

    def shingles(self, page: Page) -> Hashes:
        """The shingles that a sketch samples, all of them: uint64, shape (n,)."""
        hashes, words = self._hashes(page.tokens)
        return self.features.shingles(hashes, words, self.shingle_size)

    def compare(self, a: Fingerprint, b: Fingerprint) -> Comparison:
        """How near two pages are; pages that can't be judged are never duplicates."""
        if a.simhash is None or b.simhash is None:
            return Comparison(None, None, False)
        resemblance = self.sketcher.resemblance(a.sketch, b.sketch)
        judged = a.reason is None and b.reason is None
        near = self.is_candidate(a, b) and resemblance >= self.min_resemblance
        return Comparison(distance(a.simhash, b.simhash), resemblance, judged and near)

    def is_candidate(self, a: Fingerprint, b: Fingerprint) -> bool:
        """Whether the method finds one page when it looks for the other; both have a simhash."""
        return self.distance(a, b) <= self.radius

    def distance(self, a: Fingerprint, b: Fingerprint) -> int:
        """How far the keys of two pages are from each other, in bits; both have a simhash."""
        filed, own = np.array([a.keys, b.keys], np.uint64)
        return int(self.finder.distances(filed[np.newaxis], own)[0])


class _Recent:
    """The fingerprints that were made last: pages that are served again and again cost no work.

    It is what changes in a detector that is frozen: how long an answer takes, never the answer.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[int, Fingerprint] = OrderedDict()

    def get(self, digest: int) -> Fingerprint | None:
        """The fingerprint of equal tokens, if it is remembered."""
        return self._known.get(digest)

    def add(self, digest: int, fingerprint: Fingerprint) -> None:
        """Remembers it, and forgets the one that was asked for least recently if there are too many."""
        self._known[digest] = fingerprint
        self._known.move_to_end(digest)
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)


def _digest(octets: bytes, key: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(octets, key=key, digest_size=8).digest(), "big")
