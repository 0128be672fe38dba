"""The own content of pages, and how it differs from what they said before.

Two kinds of edits are no content.  What was seen to change when such a page was fetched twice more is noise
(`dedup.filter.noise`).  And an edit that most known pages of a host have is one of the chrome around them.
"""

import asyncio
from collections.abc import Sequence
from itertools import chain, pairwise
from math import inf
from typing import Any, NamedTuple

from xxhash import xxh3_64_intdigest

from dedup.contrib.changes.file import signed
from dedup.contrib.changes.noise import WordGaps
from dedup.filter.change import Said
from dedup.filter.noise.probe import Probe
from dedup.filter.noise.words import with_breaks
from dedup.fingerprint.chrome import KNOWN
from dedup.fingerprint.digests import with_data
from dedup.fingerprint.evidence import Part
from dedup.fingerprint.shingles import Hashes, containment
from dedup.index import Index
from dedup.latest import PAGES, Latest
from dedup.page.html import Page
from dedup.page.tokens import Breaks, Ranges, Tokens, join, without
from dedup.page.urls import host
from dedup.page.words import is_url
from dedup.texts.differences import Edit, small_edits
from dedup.texts.texts import Runs, Text

#: Chrome counts where fewer tokens than this are outside of it.
LEAST_VIEW = 8
#: An edit is one of chrome if at least this share of the known pages of a host that were met have it.
ALIKE = 0.5
#: Two texts are of one page if each has this share of what is the other's own.
SAME = 0.5
#: Tokens of two texts, multiplied, that are compared in another thread.
LARGE = 4_000_000
#: Edits of a page that are remembered: a page that has more is compared once more at the end.
FEW = 16
#: Words before and after those that differ, which are recorded with them.
AROUND = 4


class Basis(NamedTuple):
    """What was known when the edits of a page were recorded."""

    probed: int = -1  #: pages like it that were fetched again; -1: that is not known
    keys: Sequence[int] = ()
    own: Sequence[bool] = ()


class Contents:
    """Tells the contents of the pages of one crawl."""

    def __init__(self, index: Index, probe: Probe) -> None:
        self._index = index
        self._probe = probe
        self._noise = WordGaps()
        probe.heard.append(self._noise.hear)
        #: By host, `Visit.origin` of a page: others there are asked for in its manner.
        self.origins = Latest[str, Any]()
        self._known = Latest[str, int]()  # known pages that were met, by host
        self._alike = Latest[int, int](PAGES)  # pages that have an edit, by its digest

    def meet(self, url: str) -> None:
        """A page is met that an earlier crawl has met."""
        self._known[host(url)] = self._known.get(host(url), 0) + 1

    def note(self, url: str, found: list[Said], before: Sequence[int] = ()) -> None:
        """Counts the edits of a page, in place of the keys of those that were counted ``before``."""
        for key in before:
            self._alike[key] = self._alike.get(key, 1) - 1
        for key in self.keys(url, found):
            self._alike[key] = self._alike.get(key, 0) + 1

    async def learn(self, url: str, text: Text) -> None:
        """Fetches a page twice more to see what is noise, if that is not known."""

        def is_same(answer: Page) -> bool:
            return self.are_same(url, text, url, text_of(answer))

        await self._probe.learn(url, self.origins.get(host(url)), is_same)

    def probed(self, url: str) -> int:
        """Returns how many pages like this one were fetched again."""
        return self._noise.probed(url)

    def with_blocks(self, url: str, text: Text) -> Text:
        """Returns the text of a page that is there with its blocks, if noise may be known by them."""
        tokens = text.tokens
        if not isinstance(tokens, Tokens) or text.breaks or not self._noise.is_met(url):
            return text
        return text._replace(breaks=[(at, depth, b"") for at, depth, _ in tokens.find_breaks()])

    async def differences(self, url: str, old: Text, new: Text) -> list[Said]:
        """Returns the old words and the new ones, place by place, without noise: by the blocks of the new page, if it has them."""
        if not new.breaks:
            old = old._replace(breaks=())
        elif not old.breaks and self._noise.is_met(url):
            old = old._replace(breaks=as_before(new.breaks, await _edits(_each(old), _each(new))))
        a, b = self._said(url, old), self._said(url, new)
        found = await _edits(a, b)
        if not found and self._signs_count(url, old, new):
            assert old.signs is not None
            assert new.signs is not None
            signs = await _edits([*old.signs.decode()], [*new.signs.decode()])
            return [Said(old.signs.decode()[edit.start : edit.end], "".join(edit.tokens)) for edit in signs]
        return [
            Said(
                " ".join(a[edit.start : edit.end]),
                " ".join(edit.tokens),
                " ".join(a[max(0, edit.start - AROUND) : edit.start]),
                " ".join(a[edit.end : edit.end + AROUND]),
            )
            for edit in found
        ]

    def _said(self, url: str, text: Text) -> list[str]:
        """Returns the tokens of a page outside marked chrome, or all if too little is, and those of its data, without noise."""
        tokens = _each(text)
        chrome = _marked(tokens, text.chrome)
        if not self._noise.is_met(url):
            ends = [(0, 0), *chrome, (len(tokens), 0)]
            return [*chain(*(tokens[end:start] for (_, end), (start, _) in pairwise(ends))), "", *text.data]
        for start, end in chrome:
            tokens[start:end] = map(_ChromeToken, tokens[start:end])  # noise is known by what is around it
        left = self._noise.left(url, [*with_breaks(tokens, text.breaks), "", *text.data])
        return [token for token in left if type(token) is str]

    def _signs_count(self, url: str, old: Text, new: Text) -> bool:
        """Returns whether two texts differ in signs alone, which don't change from answer to answer."""
        if old.signs == new.signs or None in (old.signs, new.signs):
            return False
        if _each(old) != _each(new) or [*old.data] != [*new.data]:
            return False  # where words change that don't count, so may the signs beside them
        return not self._noise.signs_change(url)

    def keys(self, url: str, found: list[Said]) -> list[int]:
        """Returns the keys by which the edits of a page are counted."""
        name = host(url)
        return [hash((name, said.old, said.new)) for said in found]

    def own(self, url: str, found: list[Said]) -> list[Said]:
        """Returns the edits that few pages of a host have."""
        return [
            edit for edit, own in zip(found, self._are_own(url, self.keys(url, found)), strict=True) if own
        ]

    def _are_own(self, url: str, keys: Sequence[int]) -> list[bool]:
        few = max(KNOWN, ALIKE * self._known.get(host(url), inf))
        return [self._alike.get(key, 0) < few for key in keys]

    def told(self, url: str, found: list[Said]) -> Basis:
        """Returns what these edits depend on."""
        keys = self.keys(url, found)
        return Basis(self._noise.probed(url), keys, self._are_own(url, keys)) if len(keys) <= FEW else Basis()

    def stands(self, url: str, told: Basis) -> bool:
        """Returns whether nothing has become known since that changes the edits of a page, and nothing more will."""
        is_same = told.probed == self._noise.probed(url) and self._are_own(url, told.keys) == told.own
        return is_same and not self._probe.may_learn(url)

    def words(self, url: str, text: Text) -> tuple[str, ...]:
        """Returns what a page says, whatever its address: its words without noise."""
        return tuple(word for word in self._said(url, text) if not is_url(word))

    def shingles(self, url: str, text: Text) -> Hashes:
        """Returns the shingles that few pages of a host have."""
        detector, hosts = self._index.detector, self._index.hosts
        page = Page(text.tokens, 0, None, tuple(text.chrome), data=tuple(text.data))
        found = detector.fingerprint_page(page)
        if found.own is None:
            return detector.shingles(Page([], 0))
        return (
            found.own.main if hosts is None else Part(detector.sketcher, found, hosts.table(host(url))).rare
        )

    def are_same(self, url: str, old: Text, led: str, new: Text) -> bool:
        """Returns whether what two URLs say is the same page, though its words may have changed."""
        return share(self.shingles(url, old), self.shingles(led, new)) >= SAME


class _ChromeToken(str):
    """A token that is marked as chrome."""

    __slots__ = ()


def text_of(page: Page) -> Text:
    """Returns what a history stores of a page."""
    return Text(page.tokens, page.chrome, page.data, signs=page.signs)


def content_digest(page: Page) -> int:
    """Returns what tells whether a page says what it said outside marked chrome, as SQLite holds it."""
    said = with_data(without(page.tokens, _marked(page.tokens, page.chrome)), page.data)
    return signed(xxh3_64_intdigest(b"\0".join((page.body, page.signs, said))))


def _marked(tokens: Sequence[str], chrome: Runs) -> Ranges:
    """Returns what is marked as chrome; nothing if that is nearly all."""
    left = len(tokens) - sum(end - start for start, end in chrome)
    return tuple(chrome) if left >= LEAST_VIEW else ()


def _each(text: Text) -> list[str]:
    """Returns the tokens of a text, which are packed if they are not stored."""
    stored = isinstance(text.tokens, list)
    return [*text.tokens] if stored else join(text.tokens).decode().split("\0")


async def _edits(a: list[str], b: list[str]) -> list[Edit]:
    return await asyncio.to_thread(small_edits, a, b) if len(a) * len(b) > LARGE else small_edits(a, b)


def as_before(breaks: Breaks, found: Sequence[Edit]) -> Breaks:
    """Returns the breaks of a page as its old text must have had them, by the edits that have made it what it is.

    None are known beside words that are others now, unless one word is in the place of another.

    >>> as_before([(at, 1, b"") for at in (0, 2, 4, 6)], [Edit(1, 2, ["18"]), Edit(4, 5, ["a", "b"])])
    [(0, 1, b''), (2, 1, b'')]
    """
    old: list[tuple[int, int, bytes]] = []
    left = [
        (edit.start, edit.end, len(edit.tokens))
        for edit in found
        if not edit.end - edit.start == len(edit.tokens) == 1
    ]
    more = at_edit = 0  # tokens that are there now and were not
    for at, depth, _ in breaks:
        while at_edit < len(left) and left[at_edit][0] + more + left[at_edit][2] < at:
            more += left[at_edit][2] - (left[at_edit][1] - left[at_edit][0])
            at_edit += 1
        if at_edit == len(left) or at < left[at_edit][0] + more:
            old.append((at - more, depth, b""))
    return old


def share(a: Hashes, b: Hashes) -> float:
    """Returns the share of either set of shingles that the other contains, whichever is less."""
    return min(containment(a, b), containment(b, a)) if len(a) and len(b) else 0.0
