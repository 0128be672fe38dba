"""The work of `scrapy compare`: reads two pages, judges them as a crawl would, and prints every measure."""

import asyncio
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from scrapy.settings import Settings

from dedup.errors import SettingsError
from dedup.fingerprint.chrome import KNOWN, Chrome
from dedup.fingerprint.detector import Comparison, Detector, Fingerprint
from dedup.fingerprint.evidence import Evidence
from dedup.fingerprint.shingles import Hashes, containment, resemblance
from dedup.lab.labelled import read_page
from dedup.page.charset import decode
from dedup.page.data import is_digest
from dedup.page.html import Page
from dedup.printing import many, printable
from dedup.scrapy.commands.compare.own import (
    Tables,
    ask,
    describe,
    describe_own,
    evidence,
    objection,
)
from dedup.scrapy.commands.fetch import fetch_pages
from dedup.scrapy.commands.index.run import spider_meant
from dedup.scrapy.settings import Options, read_settings

__all__ = ["run"]

#: The most seconds that fetching two pages may take.
SECONDS = 60.0
#: At most this many of the tokens that only one page has are shown.
SHOWN = 20


class _Side(NamedTuple):
    """One of the two pages."""

    name: str
    source: str
    url: str  #: "" for a file
    page: Page
    fingerprint: Fingerprint


def run(a: str, b: str, settings: Settings, address: str = "", spider: str = "") -> int:
    """Compares two pages, given as a path or a URL each, and returns the exit status.

    The index at ``address``, that of a ``spider``, knows what is chrome of their host; "" asks none.
    """
    settings.set("DEDUP_INDEX", address or "memory:", "cmdline")
    options = read_settings(settings, spider_meant(settings, spider) if address else "")
    detector = options.detector
    named = {"A": a, "B": b}
    for name, source in named.items():
        _check(name, source)
    fetched = fetch_pages({a, b}, settings, seconds=SECONDS, delay=0.0)
    pages = [_load(name, source, fetched.get(source), detector) for name, source in named.items()]
    known = _ask(options, pages) if address else None
    fingerprints = [side.fingerprint for side in pages]
    compared = detector.compare(*fingerprints)
    for side in pages:
        why = f", can't be judged: {side.fingerprint.reason}" if side.fingerprint.reason else ""
        print(f"{side.name:12} {side.source}: {len(side.page.tokens):,} tokens{why}")
    if compared.distance is not None:
        _print_distance(detector, fingerprints, compared.distance)
        for name, text in _measures(detector, [side.page for side in pages], compared):
            print(f"{name:12} {text}")
    against: str | None = None
    if options.index.settings.chrome:
        found = _print_own(detector, pages, known)
        against, compared = _judged(pages, found, known, options.index.settings.min_containment, compared)
    is_duplicate, rule = _verdict(detector, fingerprints, compared, against)
    print(f"verdict      {'near-duplicates' if is_duplicate else 'different'}: {rule}")
    _print_differences([side.page.tokens for side in pages], "only in {}")
    if any(side.page.data for side in pages):
        _print_data(pages)
    return 0 if is_duplicate else 1


def _ask(options: Options, pages: Sequence[_Side]) -> Tables | None:
    """What the index knows of the pages' hosts; None if the settings don't want to know."""
    if not options.index.settings.chrome:
        return None
    return asyncio.run(ask(options.index, [side.url for side in pages]))


def _print_own(detector: Detector, pages: Sequence[_Side], known: Tables | None) -> Evidence | None:
    """Prints what is each page's own, and returns what is made of it."""
    for side in pages:
        for name, text in describe(side.name, side.page):
            print(f"{name:12} {text}")
    a, b = pages
    if a.fingerprint.own is None or b.fingerprint.own is None:
        return None
    equal = "equal" if a.fingerprint.view == b.fingerprint.view else "different"
    print(f"main view    {equal} (all outside menus and the like, and data)")
    if a.fingerprint.digest == b.fingerprint.digest:
        return None
    chrome = known.chrome(a.url, b.url) if known else None
    found = evidence(detector, a.fingerprint, a.url, b.fingerprint, b.url, chrome or Chrome())
    for text in describe_own(found):
        print(f"own          {text}")
    nothing = "nothing is known of the host: --index ADDRESS asks an index what many of its pages share"
    print(f"host         {known.describe(a.url, b.url) if known else nothing}")
    return found


def _judged(
    pages: Sequence[_Side], found: Evidence | None, known: Tables | None, least: float, compared: Comparison
) -> tuple[str, Comparison]:
    """Why the pages are different, or "", and whether they are near-duplicates by what is their own."""
    a, b = (side.fingerprint for side in pages)
    judged = a.reason is None and b.reason is None
    if found is None:
        return "", replace(compared, duplicate=judged and a.digest == b.digest and a.simhash is not None)
    against = objection(found, least)
    if a.view == b.view and found.shows_same:
        against = ""
    if known and known.chrome(*(side.url for side in pages)) is None:
        against = f"fewer than {KNOWN} kept pages of the host are known, and until then only equal pages are dropped"
    return against, replace(compared, duplicate=judged and not against)


def _verdict(
    detector: Detector, fingerprints: Sequence[Fingerprint], compared: Comparison, against: str | None
) -> tuple[bool, str]:
    """Whether the pages are near-duplicates, and the rule that decides, in words; ``against``: what speaks against it."""
    a, b = fingerprints
    if against is None or compared.resemblance is None:
        return compared.duplicate, _rule(detector, fingerprints, compared)
    if against:
        return False, against
    if not compared.duplicate:
        return False, "a page is too short to be judged"
    if a.digest == b.digest:
        return True, "they are equal"
    if a.view == b.view:
        return True, "their main views are equal, and what is in there is their own"
    return True, "nearly all that is own to each of them is on the other"


def _check(name: str, source: str) -> None:
    """Raises `SettingsError` for what is neither a file nor a URL."""
    if not source.startswith(("http://", "https://")) and not os.path.isfile(source):
        raise SettingsError(f"{name} is {source!r}, which is not a file; allowed: a path, or a http(s) URL")


def _load(name: str, source: str, fetched: tuple[str, str] | None, detector: Detector) -> _Side:
    """Reads a page, unless it was fetched.  Raises `SettingsError` if it can't be had."""
    html, url = fetched or read_page(source, Path())
    page = detector.read(decode(html), url)
    if not fetched:  # the name of a file says nothing of the address that the page had
        url, page = "", page._replace(names=(), address=(), place="")
    return _Side(name, source, url, page, detector.fingerprint_page(page))


def _print_distance(detector: Detector, fingerprints: Sequence[Fingerprint], distance: int) -> None:
    a, b = (fingerprint.simhash or 0 for fingerprint in fingerprints)
    print(f"simhash A    {a:064b}")
    print(f"simhash B    {b:064b}")
    print(f"distance     {a ^ b:064b}".replace("0", ".").replace("1", "^"))
    near = "" if detector.finder.own_keys else f" (near: up to {detector.max_distance})"
    print(f"             {distance} bits{near}")


def _measures(detector: Detector, pages: Sequence[Page], compared: Comparison) -> list[tuple[str, str]]:
    """The name of each measure of what two pages have in common, and what it says; the first one decides."""
    sets = [detector.shingles(page) for page in pages]
    alike = f"{compared.resemblance:.4f} by the sketches, {resemblance(*sets):.4f} exact"
    return [
        ("resemblance", f"{alike} (near: from {detector.min_resemblance:g})"),
        ("containment", _shares(sets)),
    ]


def _shares(sets: Sequence[Hashes]) -> str:
    """The share of each page's shingles that the other has."""
    a, b = sets
    return f"{containment(a, b):.4f} of A is in B, {containment(b, a):.4f} of B is in A"


def _rule(detector: Detector, fingerprints: Sequence[Fingerprint], compared: Comparison) -> str:
    """The rule that decides, in words."""
    if compared.duplicate:
        return f"{detector.finder.found_by} and resemblance both say so"
    if compared.resemblance is None:
        return "a page has nothing to be compared"
    if not detector.is_candidate(*fingerprints):
        return detector.finder.not_found
    if compared.resemblance < detector.min_resemblance:
        return "too few shingles in common"
    return "a page is too short to be judged"


def _print_differences(tokens: Sequence[Sequence[str]], heading: str) -> None:
    """Prints the tokens that only one of the pages has, the most frequent first."""
    a, b = map(Counter, tokens)
    for name, only in (("A", a - b), ("B", b - a)):
        if only:
            some = " ".join(token for token, _ in only.most_common(SHOWN))
            more = f" ... {len(only) - SHOWN:,} more" if len(only) > SHOWN else ""
            print(f"{heading.format(name):12} {printable(some)}{more}")


def _print_data(pages: Sequence[_Side]) -> None:
    """Prints how much data is in the pages' scripts and attributes, and what only one of them has."""
    words = [[token for token in side.page.data if not is_digest(token)] for side in pages]
    rests = [[token for token in side.page.data if is_digest(token)] for side in pages]
    for side, data in zip(pages, words, strict=True):
        print(f"data {side.name:7} {many(len(data), 'token')} in scripts and attributes, without nonces")
    _print_differences(words, "{}'s data")
    if rests[0] != rests[1]:
        print("programs     what can't be read of both pages (programs, styles, keys of data) differs")
