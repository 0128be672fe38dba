"""Why two pages are near-duplicates, or are not: every measure, and the rule that decides, in words."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Unpack

from dedup.batch.own import Tables, describe, describe_own, evidence, objection
from dedup.batch.pages import Settings, open
from dedup.fingerprint.chrome import KNOWN, Chrome
from dedup.fingerprint.detector import Detector
from dedup.fingerprint.evidence import Evidence
from dedup.fingerprint.fingerprint import Comparison, Fingerprint
from dedup.fingerprint.shingles import containment, resemblance
from dedup.page.charset import decode
from dedup.page.data import is_digest
from dedup.page.html import Page
from dedup.page.siblings import name_one_page
from dedup.page.tokenizer import without_comments
from dedup.printing import many, printable, table
from dedup.settings import IndexSettings
from dedup.texts.differences import equal_ends

#: At most this many of the tokens that only one page has are shown.
SHOWN = 20
#: Characters of markup that are shown before the first that differs, and from there on.
AROUND = 50
#: Characters of a line before what it says: its name, and a space.
WIDTH = 13


class Side(NamedTuple):
    """One of the two pages."""

    name: str
    source: str
    url: str  #: "" if it is not known
    page: Page
    fingerprint: Fingerprint


@dataclass(frozen=True)
class Explanation:
    """What two pages have in common, and the verdict.  As a str, it is what ``scrapy compare`` prints."""

    duplicate: bool
    rule: str  #: the rule that decides, in words
    distance: int | None  #: bits of their simhashes; None if a page has nothing to be compared
    resemblance: float | None  #: by their sketches, 0 to 1; likewise
    exact: float  #: by all their shingles
    containment: tuple[float, float]  #: how much of A's shingles is in B, and of B's in A
    #: Tokens that only A has, and only B, the most frequent first.
    only: tuple[tuple[str, ...], tuple[str, ...]]
    lines: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(self.lines)

    def _repr_html_(self) -> str:
        return table((line[:WIDTH], line[WIDTH:]) for line in self.lines)


def explain(
    a: bytes | str,
    b: bytes | str,
    *,
    html: bool = False,
    urls: tuple[str, str] = ("", ""),
    **settings: Unpack[Settings],
) -> Explanation:
    """Returns why two texts, or two pages of ``html``, are near-duplicates or are not, for whoever knows nothing of their host.

    Pages with ``urls`` have to match in what is their own; without, they are compared as a whole, as `dedup.Pages.add`
    does.  The keywords are those of `dedup.open`.

    >>> story = "the keeper lights the lamp at dusk and the ships far out turn away from the rocks in time " * 3
    >>> found = explain(story, story + "Visitor 1,204")
    >>> found.duplicate, found.rule, found.only
    (True, 'distance and resemblance both say so', ((), ('visitor', '1', '204')))
    >>> print(explain(story, "Not found"))
    A            57 tokens
    B            2 tokens, can't be judged: short
    simhash A    1100101100100010100000111111101100011110111110110011110001011101
    ...
    verdict      different: the simhashes are too far apart
    only in A    the keeper lights lamp at dusk and ships far out turn away from rocks in time
    only in B    not found
    """
    with open(**settings) as pages:
        sides = []
        for name, content, url in zip("AB", (a, b), urls, strict=True):
            made = pages.fingerprint(**{"html" if html else "text": content}, url=url)  # type: ignore[arg-type]
            text = decode(content)
            page = pages.detector.read(text, url) if html else pages.detector.read_text(text, url)
            sides.append(Side(name, "", url, page, made))
        return compared(pages.detector, pages.settings, sides)


def compared(
    detector: Detector,
    settings: IndexSettings,
    pages: Sequence[Side],
    known: Tables | None = None,
    nothing: str = "nothing is known of the host",
) -> Explanation:
    """Returns the same of pages that were read; ``known`` is what an index knows of their hosts, and ``nothing`` says that none was asked."""
    a, b = prints = [side.fingerprint for side in pages]
    found = detector.compare(a, b)
    sets = [detector.shingles(side.page) for side in pages]
    exact, shares = resemblance(*sets), (containment(*sets), containment(*reversed(sets)))
    lines = [(side.name, _head(side)) for side in pages]
    if found.distance is not None:
        lines += _distance(detector, prints, found.distance)
        alike = f"{found.resemblance:.4f} by the sketches, {exact:.4f} exact"
        lines.append(("resemblance", f"{alike} (near: from {detector.min_resemblance:g})"))
        lines.append(("containment", f"{shares[0]:.4f} of A is in B, {shares[1]:.4f} of B is in A"))
    against: str | None = None
    if settings.chrome and any(side.fingerprint.own is not None for side in pages):
        lines += [line for side in pages for line in describe(side.name, side.page)]
        own = _evidence(detector, pages, known)
        if a.own is not None and b.own is not None:
            equal = "equal" if a.markup == b.markup else "different"
            lines.append(("markup", f"{equal} (all that can be seen: tags, attributes, texts, links)"))
            if a.digest == b.digest and a.markup != b.markup:
                lines += _first_difference(*(side.page.markup for side in pages))
        if own is not None:
            lines += [("own", text) for text in describe_own(own)]
            lines.append(("host", known.describe(*(side.url for side in pages)) if known else nothing))
        against, found = _judged(pages, own, known, settings.min_containment, found)
    is_duplicate, rule = _verdict(detector, prints, found, against)
    lines.append(("verdict", f"{'near-duplicates' if is_duplicate else 'different'}: {rule}"))
    only = _only([side.page.tokens for side in pages])
    lines += _shown(only, "only in {}")
    lines += _data(pages)
    return Explanation(
        is_duplicate,
        rule,
        found.distance,
        found.resemblance,
        exact,
        shares,
        only,
        tuple(f"{name:{WIDTH - 1}} {text}" for name, text in lines),
    )


def _head(side: Side) -> str:
    source = f"{side.source}: " if side.source else ""
    why = f", can't be judged: {side.fingerprint.reason}" if side.fingerprint.reason else ""
    return f"{source}{many(len(side.page.tokens), 'token')}{why}"


def _evidence(detector: Detector, pages: Sequence[Side], known: Tables | None) -> Evidence | None:
    a, b = pages
    if a.fingerprint.own is None or b.fingerprint.own is None or _are_equal(pages):
        return None
    chrome = known.chrome(a.url, b.url) if known else None
    return evidence(detector, a.fingerprint, a.url, b.fingerprint, b.url, chrome or Chrome())


def _are_equal(pages: Sequence[Side]) -> bool:
    """Returns whether two pages are equal: in all that can be seen, or in their tokens if their addresses name one page."""
    a, b = (side.fingerprint for side in pages)
    return a.digest == b.digest and (a.markup == b.markup or name_one_page(*(side.url for side in pages)))


def _judged(
    pages: Sequence[Side], found: Evidence | None, known: Tables | None, least: float, compared: Comparison
) -> tuple[str, Comparison]:
    """Returns why the pages are different, or "", and whether they are near-duplicates by what is their own."""
    a, b = (side.fingerprint for side in pages)
    judged = a.reason is None and b.reason is None
    if found is None:
        return "", replace(compared, duplicate=judged and _are_equal(pages) and a.simhash is not None)
    against = objection(found, least)
    if known and known.chrome(*(side.url for side in pages)) is None:
        against = f"fewer than {KNOWN} kept pages of the host are known, and until then only equal pages are dropped"
    return against, replace(compared, duplicate=judged and not against)


def _verdict(
    detector: Detector, fingerprints: Sequence[Fingerprint], compared: Comparison, against: str | None
) -> tuple[bool, str]:
    """Returns whether the pages are near-duplicates, and the rule that decides, in words; ``against``: what speaks against it."""
    a, b = fingerprints
    if against is None or compared.resemblance is None:
        return compared.duplicate, _rule(detector, fingerprints, compared)
    if against:
        return False, against
    if not compared.duplicate:
        return False, "a page is too short to be judged"
    if a.digest == b.digest:
        return True, "they are equal" if a.markup == b.markup else "their words are equal"
    return True, "nearly all that is own to each of them is on the other"


def _rule(detector: Detector, fingerprints: Sequence[Fingerprint], compared: Comparison) -> str:
    """Returns the rule that decides, in words."""
    if compared.duplicate:
        return f"{detector.finder.found_by} and resemblance both say so"
    if compared.resemblance is None:
        return "a page has nothing to be compared"
    if not detector.is_candidate(*fingerprints):
        return detector.finder.not_found
    if compared.resemblance < detector.min_resemblance:
        return "too few shingles in common"
    return "a page is too short to be judged"


def _distance(
    detector: Detector, fingerprints: Sequence[Fingerprint], distance: int
) -> Iterator[tuple[str, str]]:
    a, b = (fingerprint.simhash or 0 for fingerprint in fingerprints)
    yield "simhash A", f"{a:064b}"
    yield "simhash B", f"{b:064b}"
    yield "distance", f"{a ^ b:064b}".replace("0", ".").replace("1", "^")
    near = "" if detector.finder.own_keys else f" (near: up to {detector.max_distance})"
    yield "", f"{distance} bits{near}"


def _only(tokens: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the tokens that only one of two has, the most frequent first."""
    a, b = map(Counter, tokens)
    first, second = (tuple(token for token, _ in only.most_common()) for only in (a - b, b - a))
    return first, second


def _shown(only: Sequence[Sequence[str]], heading: str) -> Iterator[tuple[str, str]]:
    for name, tokens in zip("AB", only, strict=True):
        if tokens:
            more = f" ... {len(tokens) - SHOWN:,} more" if len(tokens) > SHOWN else ""
            yield heading.format(name), printable(" ".join(tokens[:SHOWN])) + more


def _first_difference(a: str, b: str) -> Iterator[tuple[str, str]]:
    """Yields where the markup of two pages begins to differ, comments left out."""
    octets = [without_comments(markup.encode("utf-8", "surrogatepass")) for markup in (a, b)]
    texts = [each.decode("utf-8", "surrogatepass") for each in octets]
    at = equal_ends(*texts)[0]
    start = max(0, at - AROUND)
    for name, text in zip("AB", texts, strict=True):
        yield f"markup {name}", printable(f"{'... ' * (start > 0)}{text[start : at + AROUND]}")


def _data(pages: Sequence[Side]) -> Iterator[tuple[str, str]]:
    """Yields how much data is in the pages' scripts and attributes, and what only one of them has."""
    if not any(side.page.data for side in pages):
        return
    words = [[token for token in side.page.data if not is_digest(token)] for side in pages]
    rests = [[token for token in side.page.data if is_digest(token)] for side in pages]
    for side, data in zip(pages, words, strict=True):
        yield f"data {side.name}", f"{many(len(data), 'token')} in scripts and attributes, without nonces"
    yield from _shown(_only(words), "{}'s data")
    if rests[0] != rests[1]:
        yield "programs", "what can't be read of both pages (programs, styles, keys of data) differs"
