"""Detector: options checked once; page -> Fingerprint; two Fingerprints -> Comparison.

The verdict in one line: a near-duplicate is a candidate by ``method`` **and** has at least
``min_resemblance`` in common by the sketches of its shingles.  The method finds candidates cheaply; the
sketch of the six-token shingles, AltaVista's features, confirms.  Candidates are, by "simhash", pages within
``max_distance`` bits of simhash; by "minhash", pages that share a band of min-hashes; by "supershingle",
pages that share a megashingle (`dedup.fingerprint.methods`).
"""

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np
from lxml import etree
from msgspec.structs import replace
from xxhash import xxh3_64_intdigest

from dedup.errors import SettingsError
from dedup.fingerprint.digests import bloom, digest_of, with_data
from dedup.fingerprint.features import FIXED, Features
from dedup.fingerprint.fingerprint import Called, Comparison, Fingerprint, Own
from dedup.fingerprint.methods import METHODS, Method
from dedup.fingerprint.numbers import Maker, Numbers
from dedup.fingerprint.plans import Plan
from dedup.fingerprint.shingles import Hashes, hash_tokens
from dedup.fingerprint.simhash import distance
from dedup.fingerprint.sketch import Sketcher
from dedup.latest import Latest
from dedup.page.charset import decode
from dedup.page.html import Page, parse
from dedup.page.ignore import Ignore
from dedup.page.read import read, read_text, tokens_as_page
from dedup.page.tokenizer import without_comments
from dedup.page.tokens import join
from dedup.settings import DetectorSettings

#: Changes whenever the same page would get another fingerprint; stored with every index.
SCHEME = 7
#: Fingerprints that a detector remembers, in 1 kB each and 8 bytes a word: pages that are served again and again cost no
#: work.
REMEMBERED = 1024
#: Made-up features of a page that is no text.
BODY_TOKENS = 256


@dataclass(frozen=True)
class Detector(DetectorSettings):
    """Judges pages; its keywords are `DetectorSettings`.

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

    features: Features = field(default_factory=Features)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.features, Features):
            raise SettingsError(name="features", value=self.features, allowed="a dedup.Features")
        _ = self.finder, self.ignored  # which raise if they can't be made from these settings

    def __getstate__(self) -> dict[str, Any]:
        """Returns the settings alone: all else is made again, where it is unpickled."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @cached_property
    def finder(self) -> Method:
        """The method that ``method`` names, by which candidates are found."""
        make, settings = METHODS[self.method]
        return make(*(getattr(self, name) for name in settings))

    @cached_property
    def ignored(self) -> Ignore:
        """What of a page doesn't count."""
        return Ignore(self.ignore, self.ignore_text)

    @cached_property
    def sketcher(self) -> Sketcher:
        """The kind of sketch by which candidates are confirmed."""
        return Sketcher(self.features.slots, self.features.bits, self._secrets["sketch"])

    def plan(self, expected_pages: int, tables: int | None = None, *, in_memory: bool = False) -> Plan:
        """Returns the tables in which a page is filed, ``tables`` of them if that is asked for.

        ``in_memory``: for a store whose look-ups may read many prefixes.  Raises `SettingsError` for a number of
        tables that is not possible.
        """
        return self.finder.plan(expected_pages, tables, in_memory=in_memory)

    @property
    def radius(self) -> int:
        """How far from a page's key its candidates may be, in bits."""
        return self.finder.radius

    @cached_property
    def _secrets(self) -> dict[str, int]:
        """Numbers that nobody can tell without ``hash_key``, one for each purpose that hashes serve."""
        secret = hashlib.blake2b(self.hash_key.encode(), digest_size=32).digest()
        purposes = ("check", "digest", "signature", "sketch", "tokens")
        keys = {purpose: digest_of(purpose.encode(), secret) for purpose in purposes}
        return keys if self.hash_key else keys | {"tokens": 0}

    @cached_property
    def _recent(self) -> Latest[tuple[int, int], Fingerprint]:
        """Fingerprints that were made last, by a digest of the tokens and a hash of what is chrome.

        They are what changes in a detector that is frozen: how long an answer takes, never the answer.
        """
        return Latest(REMEMBERED)

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
            "ignore": json.dumps(sorted(set(self.ignore))),  # in any order, they mean the same
            "ignore_text": json.dumps(self.ignore_text),
            "hash_key": f"{self._secrets['check']:016x}",
            **{f"features.{name}": value for name, value in (FIXED | asdict(self.features)).items()},
        }
        values |= self.finder.parameters
        return {name: str(value) for name, value in values.items()}

    def read(self, text: str, url: str = "", tree: Callable[[str], etree._Element] = parse) -> Page:
        """Returns the tokens of a page's decoded text, as `dedup.page.read.read` gives them, without what doesn't count.

        >>> Detector(ignore=(".cookies",)).read("<p>A story<p class=cookies>We like cookies").tokens
        ['a', 'story']
        """
        return read(text, url, self.keep_urls, tree, self.ignored)

    def read_text(self, text: str, url: str = "", *, is_json: bool = False) -> Page:
        """Returns the tokens of plain text or JSON, likewise."""
        return read_text(text, url, is_json=is_json, ignore=self.ignored)

    def fingerprint(self, html: bytes | str, url: str = "", encoding: str | None = None) -> Fingerprint:
        """Returns the fingerprint of a page's HTML; ``encoding`` is what its server said of it."""
        _check("html", html, (bytes, str), "bytes or str")
        return self.fingerprint_page(self.read(decode(html, encoding), url))

    def fingerprint_text(self, text: str, url: str = "") -> Fingerprint:
        """Returns the fingerprint of plain text or Markdown: nothing in it is taken for markup.

        >>> Detector().fingerprint_text("a <b> c").tokens
        3
        """
        _check("text", text, (str,), "str")
        return self.fingerprint_page(self.read_text(decode(text), url))

    def fingerprint_tokens(self, tokens: Iterable[str]) -> Fingerprint:
        """Returns the fingerprint of words in their order, which are taken as they are; one that begins with "/" is a URL.

        >>> Detector(min_tokens=2).fingerprint_tokens(["two", "words", "/docs/"]).reason
        """
        words = (
            tokens if isinstance(tokens, str | bytes) or not isinstance(tokens, Iterable) else list(tokens)
        )
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise TypeError(f"tokens is {_shown(tokens)}; allowed: a list of str")
        return self.fingerprint_page(tokens_as_page([decode(word) for word in words]))

    def fingerprint_page(self, page: Page) -> Fingerprint:
        """Returns the fingerprint of a page's tokens; of a page equal to one seen before, nothing is computed."""
        if page.reason is not None:
            return Fingerprint.unjudged(page.reason, len(page.tokens), page.links)
        secret = self._secrets["digest"].to_bytes(8, "big")
        if page.body:
            return self._of_body(page.body, digest_of(page.body, secret))
        digest = digest_of(with_data(join(page.tokens), page.data), secret)
        if page.signs:
            digest = digest_of(digest.to_bytes(8, "big") + page.signs, secret)
        called = self._called(page)
        key = digest, hash(page.chrome)  # which depends on its markup, not on its tokens
        markup = self.digest_markup(page.markup) or digest
        if found := self._recent.get(key):
            found = replace(found, links=page.links, called=called, markup=markup)
        else:
            found = self._compute(page, digest, markup, called)
        self._recent[key] = found
        return found

    def digest_markup(self, markup: str) -> int:
        """Returns 64 bits that stand for all that can be seen of a page, comments left out; 0 for no markup.

        >>> detector = Detector()
        >>> detector.digest_markup("<b>10 Mb<!-- 12:05 -->") == detector.digest_markup("<b>10 Mb"), detector.digest_markup("<b>10 MB") == detector.digest_markup("<b>10 Mb")
        (True, False)
        """
        if not markup:
            return 0
        octets = markup.encode("utf-8", "surrogatepass")
        return xxh3_64_intdigest(without_comments(octets), self._secrets["digest"])

    def elsewhere(self, found: Fingerprint, page: Page) -> Fingerprint:
        """Returns the fingerprint of a page that differs only in its address from one that was judged, and returns its tokens may be missing."""
        return replace(found, called=self._called(page))

    def _called(self, page: Page) -> Called:
        secret = self._secrets["digest"].to_bytes(8, "big")
        place = digest_of(page.place.encode("utf-8", "replace"), secret) if page.place else 0
        return Called(bloom(page.names, secret), place)

    def _compute(self, page: Page, digest: int, markup: int, called: Called) -> Fingerprint:
        made = self._maker.make(page.tokens, page.data, page.chrome)
        if made.simhash is None:
            unjudged = Fingerprint.unjudged("short", len(page.tokens), page.links)
            return replace(unjudged, markup=markup, called=called)
        return Fingerprint(
            made.simhash,
            made.sketch,
            len(page.tokens),
            page.links,
            "short" if made.words < self.min_tokens else None,
            digest,
            self._bands(page, made),
            markup,
            called,
            Own(made.main),
        )

    def _bands(self, page: Page, made: Numbers) -> tuple[int, ...]:
        if not self.finder.own_keys:
            return ()
        # Of a page without chrome, all shingles are at hand: to hash its tokens once more takes as long as all else.
        shingles = self.shingles(page) if page.chrome else self.sketcher.shingles(made.main)
        return self.finder.bands(shingles, self._secrets["signature"])

    @cached_property
    def _maker(self) -> Maker:
        seed = self._secrets["tokens"]
        return Maker(self.features, self.sketcher, self.keep_urls, self.shingle_size, self.min_tokens, seed)

    def shingles(self, page: Page) -> Hashes:
        """Returns the shingles that a sketch samples, all of them: uint64, shape (n,)."""
        return np.concatenate([self._maker.shingles(tokens) for tokens in (page.tokens, page.data)])

    def _of_body(self, body: bytes, digest: int) -> Fingerprint:
        """Returns the fingerprint of a page that is no text, given a digest of it: near nothing but what is equal."""
        hashes = hash_tokens(
            [f"{body.hex()}{number}" for number in range(BODY_TOKENS)], self._secrets["tokens"]
        )
        return Fingerprint(
            self.features.simhash(hashes, hashes),
            self.sketcher.make(hashes),
            0,
            0,
            digest=digest,
            markup=digest,
            bands=self.finder.bands(hashes, self._secrets["signature"]),
        )

    def compare(self, a: Fingerprint, b: Fingerprint) -> Comparison:
        """Returns how near two pages are; pages that can't be judged are never duplicates."""
        if a.simhash is None or b.simhash is None:
            return Comparison(None, None, False)
        resemblance = self.sketcher.resemblance(a.sketch, b.sketch)
        judged = a.reason is None and b.reason is None
        near = self.is_candidate(a, b) and resemblance >= self.min_resemblance
        return Comparison(distance(a.simhash, b.simhash), resemblance, judged and near)

    def is_candidate(self, a: Fingerprint, b: Fingerprint) -> bool:
        """Returns whether the method finds one page when it looks for the other; both have a simhash."""
        return self.distance(a, b) <= self.radius

    def distance(self, a: Fingerprint, b: Fingerprint) -> int:
        """Returns how far the keys of two pages are from each other, in bits; both have a simhash."""
        filed, own = np.array([a.keys, b.keys], np.uint64)
        return int(self.finder.distances(filed[np.newaxis], own)[0])


def _check(name: str, value: object, types: tuple[type, ...], allowed: str) -> None:
    if not isinstance(value, types):
        raise TypeError(f"{name} is {_shown(value)}; allowed: {allowed}")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
