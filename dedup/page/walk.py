"""Tree -> words and URLs: the walk over the nodes of a page.

There are two walks, which find the same: one in Python, and a compiled one, which is used where the package
was built with a C compiler.
"""

import struct
from enum import Enum
from functools import lru_cache, partial
from itertools import pairwise
from typing import NamedTuple

from lxml import etree

from dedup.compiled import fast
from dedup.page import flat, urls, words
from dedup.page.limits import MAX_TOKENS
from dedup.page.tokens import Breaks, Ranges, Tokens

#: Characters of the longest texts between two marks whose tokens are remembered, and how many of these texts.
SHORT, REMEMBERED = 64, 1 << 14
_fold_again = lru_cache(maxsize=REMEMBERED)(words.fold_text)

#: What links lead to that is no page.
ADDRESSES = ("mailto:", "tel:")


class Part(Enum):
    """What a run of a page's tokens belongs to."""

    TEXT = 0
    CHROME = 1
    NAME = 2


class Contents(NamedTuple):
    """What a walk has found, in document order."""

    tokens: Tokens
    chrome: Ranges  #: runs of tokens, from ... to before ..., that are marked as chrome
    heading: tuple[str, ...]  #: words of the title and of the first h1
    left: int  #: words outside marked chrome
    links: int  #: how many different URLs its HREFs name
    data: list[tuple[str, str]]  #: pieces, each with its kind and its text, as `dedup.page.data` has them
    related: list[tuple[str, str]]  #: rel and href
    base: str
    signs: bytes  #: of what is shown, all that is no letter or digit of ASCII, and no space; and attributes that are not read


def walk(root: etree._Element, url: str, keep_urls: bool) -> Contents:
    """Returns what is in a tree, and does not change it.  O(size of the tree).

    ``url`` is that against which links are resolved.
    """
    return (walk_fast if fast else walk_in_python)(root, url, keep_urls)


def walk_fast(root: etree._Element, url: str, keep_urls: bool) -> Contents:
    assert fast
    octets, count, *found, edges = fast.walk(root, url, keep_urls, flat, urls, words)
    contents = Contents(Tokens(octets, count), *found)
    contents.tokens.find_breaks = partial(_breaks, edges, contents.signs)
    return contents


def _breaks(edges: bytes, signs: bytes) -> Breaks:
    """Returns where blocks begin and end, as `dedup.page.blocks.find_breaks` has it."""
    met = list(struct.iter_unpack("=3q", edges))
    before = [0, *(end for _, _, end in met)]
    return [
        (at, depth, words.without_letters(signs[start:end]))
        for (at, depth, end), start in zip(met, before, strict=False)
    ]


def walk_in_python(root: etree._Element, url: str, keep_urls: bool) -> Contents:
    met = Walk(url, keep_urls)
    for mark, value, text in flat.read_flat(root):
        if mark:
            MARKS[mark](met, value)
        met.add_text(text)
    octets, chrome, heading, left = met.settle()
    related = [
        (rel, href)
        for node in root.iter("link")
        if (rel := node.get("rel")) is not None and (href := node.get("href")) is not None
    ]
    return Contents(
        Tokens(octets[:-1], octets.count(0)),
        chrome,
        heading,
        left,
        len(met.links),
        met.data,
        related,
        met.base,
        b"".join((*met.signs, met.signs_of_texts())),
    )


class Walk:
    """What was met of a page, and where in it the walk is."""

    def __init__(self, url: str, keep_urls: bool) -> None:
        self.base = self._url = url
        self._folder = urls.folder(url)
        self._keep_urls = keep_urls
        self.pieces: list[bytes] = []  # tokens, each with a NUL behind it
        self._unfolded = 0  # tokens of texts that are not ASCII
        self.links: set[str] = set()
        self.data: list[tuple[str, str]] = []
        self.signs: list[bytes] = []
        self._texts: list[str] = []  # whose signs are yet to be found
        self._titles: list[str] = []  # of links, and their programs
        self._bare: dict[str, dict[str, list[int]]] = {}  # URL tokens by what is left of them without ids
        self._named = self._content = self._chrome = False  # whether such an element is open
        self._unnamed = {flat.TITLE, flat.HEADING}
        self._open: list[tuple[bool, bool, bool]] = []  # what was open before each element that is
        self._parts: list[tuple[Part, int]] = [(Part.TEXT, 0)]  # which begin before which piece

    def add_text(self, text: str) -> None:
        if self._unfolded > MAX_TOKENS:  # of ASCII, a page is too short to have many more
            return
        self._texts.append(text)
        fold = words.fold_name if self._named else _fold_again if len(text) <= SHORT else words.fold_text
        piece = fold(text)
        if not text.isascii():
            self._unfolded += piece.count(0)
        self.pieces.append(piece)

    def add_href(self, value: str) -> None:
        if value.startswith("javascript:"):
            self.add_title(value)
        elif value.startswith(ADDRESSES):
            self.add_sign(value)
        elif token := self._add_url(urls.url_tokens(value, self.base, self._folder)):
            self.links.add(token)

    def add_source(self, value: str) -> None:
        if value.startswith("data:"):
            self.data.append(("@data:", value))
        else:
            self._add_url(urls.source_tokens(value, self.base, self._folder))

    def add_sources(self, value: str) -> None:
        if first := value.split(None, 1)[:1]:
            self.add_source(first[0].rstrip(","))

    def _add_url(self, found: tuple[str, str] | None) -> str | None:
        if found is None:
            return None
        token, stripped = found
        if self._keep_urls:
            if stripped != token:
                self._bare.setdefault(stripped, {}).setdefault(token, []).append(len(self.pieces))
            self.pieces.append(_url_octets(token))
        return token

    def set_base(self, value: str) -> None:
        if self.base == self._url and value:
            self.base = urls.base_of(self._url, value)
            self._folder = urls.folder(self.base)

    def add_code(self, value: str) -> None:
        tag, kind, text = value.split("\n", 2)
        self.data.append((kind if tag == "script" else tag, text))

    def add_datum(self, value: str) -> None:
        name, _, text = value.partition("\n")
        self.data.append(("@" + name, text))

    def add_title(self, value: str) -> None:
        self._titles.append(value + "\0")

    def add_sign(self, value: str) -> None:
        self.signs += self.signs_of_texts(), value.encode("utf-8", "replace") + b"\0"

    def signs_of_texts(self) -> bytes:
        """Returns the signs of the texts since the last attribute that is not read."""
        texts, self._texts = self._texts, []
        return words.signs_of("".join(texts))

    def add_value(self, value: str) -> None:
        tag, kind, name, text = value.split("\n", 3)
        if (key := flat.datum_name(tag, kind, name)) is not None:
            self.data.append((key, text))
        else:
            self.add_text(text)

    def begin(self, value: str) -> None:
        """An element that is more than text or a link begins: its tag, and its role."""
        tag, _, role = value.partition(" ")
        self._open.append((self._named, self._content, self._chrome))
        if not self._content and tag in flat.CONTENT:
            self._content = True
        elif not self._named and tag in self._unnamed:
            self._unnamed.discard(tag)
            self._named = True
        elif not self._chrome:
            is_margin = tag in flat.MARGINS and not self._content
            self._chrome = is_margin or tag in flat.CHROME or flat.is_chrome_role(role)
        self._note_part()

    def end(self, _: str) -> None:
        self._named, self._content, self._chrome = self._open.pop()
        self._note_part()

    def _note_part(self) -> None:
        part = Part.NAME if self._named else Part.CHROME if self._chrome else Part.TEXT
        self._parts.append((part, len(self.pieces)))

    def settle(self) -> tuple[bytes, Ranges, tuple[str, ...], int]:
        """Returns the tokens, each with a NUL behind it, and returns the runs of chrome and the words of the heading; and how many words are
        outside chrome."""
        if self._titles:
            self.data.append(("@links", "".join(self._titles)))
        # Where ids are not needed to tell URLs apart, they are left out.
        for stripped, tokens in self._bare.items():
            if len(tokens) == 1:
                for place in next(iter(tokens.values())):
                    self.pieces[place] = _url_octets(stripped)
        runs: list[bytes] = []
        chrome: list[tuple[int, int]] = []
        heading: list[str] = []
        count = left = 0
        for (part, start), (_, end) in pairwise((*self._parts, (Part.TEXT, len(self.pieces)))):
            if not (run := b"".join(self.pieces[start:end])):
                continue
            before, count = count, count + run.count(0)
            if part is not Part.CHROME:
                left += count - before - run.count(b"\0/") - run.startswith(b"/")
            elif chrome and chrome[-1][1] == before:
                chrome[-1] = chrome[-1][0], count
            else:
                chrome.append((before, count))
            if part is Part.NAME:
                heading += [token for token in run[:-1].decode().split("\0") if not words.is_url(token)]
            runs.append(run)
        return b"".join(runs), tuple(chrome), tuple(heading), left


@lru_cache(maxsize=REMEMBERED)
def _url_octets(token: str) -> bytes:
    return token.lower().encode() + b"\0"


#: What a mark of each kind means to the walk.
MARKS = {
    "h": Walk.add_href,
    "i": Walk.add_source,
    "t": Walk.add_sources,
    "w": Walk.add_text,
    "d": Walk.add_datum,
    "l": Walk.add_title,
    "e": Walk.add_sign,
    "v": Walk.add_value,
    "b": Walk.set_base,
    "p": Walk.begin,
    "/": Walk.end,
    "s": Walk.add_code,
}
