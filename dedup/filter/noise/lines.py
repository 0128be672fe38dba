"""Markup -> lines: a line is what stands between two tags of blocks, with the blocks that it is in.

Nothing that a reader, a script or a link could see is left out: tags, attributes and their values, words in their case, signs,
and the spaces that count.  Only what a page says of its own address is the same on all of them.

>>> for line in lines_of("<ul class=menu><li>Home <b>now</b><li><a href='?id=7'>10 Mb</a></ul>", "http://a.org/view?id=7"):
...     print(line.place, line.path, *line.tokens)
ul.menu0 ul.menu <ul  class= menu <>
ul.menu0/li ul.menu/li <li Home <b now </b
ul.menu0/li ul.menu/li <li <a  href= @ <> 10 Mb </a
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from types import SimpleNamespace
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from dedup.compiled import fast
from dedup.page.flat import CODE, INLINE
from dedup.page.tokenizer import Kind, tokenize
from dedup.page.urls import origin

#: Elements that have no end.
_VOID = frozenset(
    [
        "area",
        "base",
        "br",
        "col",
        "embed",
        "hr",
        "img",
        "input",
        "link",
        "meta",
        "param",
        "source",
        "track",
        "wbr",
    ]
)
#: Elements that end where one of the others begins.
_ENDED_BY = {
    **{name: frozenset({name}) for name in ("li", "p", "option", "tr")},
    **dict.fromkeys(("td", "th"), frozenset({"td", "th", "tr"})),
    **dict.fromkeys(("dt", "dd"), frozenset({"dt", "dd"})),
}
#: Those that stand in any number beside each other.
_ITEMS = frozenset(["li", "tr", "td", "th", "dt", "dd", "option"])
#: Blocks within blocks that are told; what is nested more deeply is taken to be beside the last of them.
MAX_DEPTH = 64
#: Characters by which a block is called.
MAX_NAME = 32
#: What may be an id is one token, whatever signs are in it.
_TOKENS = re.compile(r"[A-Za-z0-9_+=-]{16,}|\w+|[^\w\s]")
_ALL = re.compile(r"\w+|\s|[^\w\s]")
_DIGITS = re.compile(r"\d+")
_IN_LINES = INLINE | {"br"}
#: Stands for the page's own address; for one that differs from it in numbers alone, with how many follow.
SELF, LIKE = "@", "<@"


class Line(NamedTuple):
    """A line of a page; two are equal wherever they stand."""

    path: str  #: the blocks that it is in, by their names and classes
    tokens: tuple[str, ...]
    #: The same blocks, each numbered among its siblings of one name and class, but for items of lists and parts of tables.
    place: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Line) and self[:2] == other[:2]

    def __hash__(self) -> int:
        return hash(self[:2])


def lines_of(markup: str, url: str, *, marks_like: bool = False) -> list[Line]:
    """Returns the lines of a page at a URL.  O(characters).

    If it ``marks_like``, links to addresses that differ from this one in numbers alone are `LIKE` and the numbers.
    """
    octets, values = markup.encode("utf-8", "surrogatepass"), _Values(url, marks_like=marks_like)
    if fast:
        lines: list[Line] = fast.lines(octets, values, _RULES)
        return lines
    return [*_Reader(values).read(octets)]


class _Values:
    """Values of attributes -> tokens, of which the page's own address is one, however it is spelled."""

    def __init__(self, url: str, *, marks_like: bool) -> None:
        self._own, self._name, self.quoted = _spellings(url)
        self.own = self._own | {self._name} - {""}  #: what may be the page's address
        self.like = {_DIGITS.sub("0", own) for own in self.own if marks_like and _DIGITS.search(own)}

    def tokens(self, value: str, name: str) -> list[str]:
        """Returns the tokens of the value of an attribute; the last part of an address is one in a link alone."""
        address, _, fragment = value.partition("#")
        if address and (address in self._own or (address == self._name and name == "href")):
            return [SELF, *_tokens(fragment)]
        if self.like and _DIGITS.sub("0", value) in self.like:
            numbers = numbers_in(value)
            return [f"{LIKE}{len(numbers)}", *numbers]
        if len(value) > len(self.quoted[0]):
            for own in filter(None, self.quoted):  # a row of an archive may have no URL
                value = _with_self(value, own)
        return _tokens(value)


class _Block(NamedTuple):
    """A block that is open."""

    tag: str
    path: str
    place: str
    beside: Counter[str]  #: the blocks in it so far, by name and class


class _Reader:
    def __init__(self, values: _Values) -> None:
        self._values = values
        self._open: list[_Block] = []
        self._beside = Counter[str]()  # blocks at the top, by name and class
        self._path = self._place = ""
        self._pre = 0  # how many of them keep their spaces
        self._line: list[str] = []

    def read(self, octets: bytes) -> Iterator[Line]:
        tag = ""
        for kind, start, end, text, attributes, _ in tokenize(octets, sections=True):
            if kind is Kind.TEXT:
                self._line += _tokens(text) if not self._pre or tag in CODE else _ALL.findall(text)
            elif kind is Kind.DOCTYPE or kind is Kind.COMMENT:
                if not octets.startswith(b"<!--", start):  # some are text in XHTML
                    self._line += _tokens(octets[start:end].decode("utf-8", "surrogatepass"))
            elif (tag := text) in CODE:
                self._line += self._tag(tag, attributes) if kind is Kind.START else ()
            elif tag in _IN_LINES:
                self._line += (f"</{tag}",) if kind is Kind.END else self._tag(tag, attributes)
            elif not says_address(tag, attributes):
                yield from self._end_line()
                if kind is Kind.START:
                    self._begin(tag, attributes)
                else:
                    self._end(tag)
                if tag in _VOID:
                    yield from self._end_line()
        yield from self._end_line()

    def _end_line(self) -> Iterator[Line]:
        if self._line:
            yield Line(self._path, tuple(self._line), self._place)
            self._line = []

    def _begin(self, tag: str, attributes: dict[str, str]) -> None:
        opened = self._open
        while opened and tag in _ENDED_BY.get(opened[-1].tag, ()):
            self._close(len(opened) - 1)
        self._line = self._tag(tag, attributes)
        if tag not in _VOID and len(opened) < MAX_DEPTH:
            self._pre += tag == "pre"
            name, beside = _named(tag, _class_in(self._line)), opened[-1].beside if opened else self._beside
            number = "" if tag in _ITEMS else beside[name]
            beside[name] += 1
            self._path, self._place = (
                f"{self._path}/{name}".lstrip("/"),
                f"{self._place}/{name}{number}".lstrip("/"),
            )
            opened.append(_Block(tag, self._path, self._place, Counter()))

    def _end(self, tag: str) -> None:
        at = next((at for at in range(len(self._open) - 1, -1, -1) if self._open[at].tag == tag), None)
        if at is not None:
            self._close(at)

    def _close(self, at: int) -> None:
        self._pre -= sum(block.tag == "pre" for block in self._open[at:])
        del self._open[at:]
        self._path, self._place = self._open[-1][1:3] if self._open else ("", "")

    def _tag(self, tag: str, attributes: dict[str, str]) -> list[str]:
        found = [f"<{tag}"]
        for name, value in attributes.items():
            found += (f" {name}=", *self._values.tokens(value, name))
        return [*found, "<>"] if attributes else found


def says_address(tag: str, attributes: Mapping[str, str]) -> bool:
    """Whether an element says only by which address a page should be known."""
    if tag == "link":
        return "canonical" in attributes.get("rel", "").lower().split()
    return tag == "meta" and attributes.get("property", "").strip().lower() == "og:url"


@lru_cache(maxsize=1 << 12)
def _named(tag: str, classes: str) -> str:
    return (f"{tag}.{_DIGITS.sub('0', classes)}" if classes else tag)[:MAX_NAME]


def _class_in(attributes: Sequence[str]) -> str:
    """Returns the first class of an element, by its tokens."""
    try:
        at = attributes.index(" class=") + 1
    except ValueError:
        return ""
    end = next(end for end in range(at, len(attributes)) if attributes[end][:1] in " <")
    return "".join(attributes[at : min(end, at + 3)])


def _tokens(text: str) -> list[str]:
    return _TOKENS.findall(text)


def numbers_in(url: str) -> list[str]:
    """Returns the numbers in the path and the query of an address.

    >>> numbers_in("http://a1.org:8080/2026/05")
    ['2026', '05']
    """
    return _DIGITS.findall(url.removeprefix(origin(url)))


def _with_self(value: str, own: str) -> str:
    """Returns a value in which the page's address is `SELF`, unless it goes on, as ``?id=7`` does in ``?id=71``."""
    first, *rest = value.split(own)
    return first + "".join(f"{own if part[:1].isalnum() else SELF}{part}" for part in rest)


def _spellings(url: str) -> tuple[frozenset[str], str, tuple[str, ...]]:
    """Returns how a page may spell its own address, how a link beside it may, and what may stand within other addresses."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return frozenset(), "", (url,)
    query = f"?{parts.query}" if parts.query else ""
    name = parts.path.rpartition("/")[2]
    own = {url, f"//{parts.netloc}{parts.path}{query}", f"{parts.path}{query}", query}
    return frozenset(own - {"", "/"}), f"{name}{query}", (url, quote(url, ""), quote(url))


#: What the compiled reader asks Python for.
_RULES = SimpleNamespace(
    CODE=CODE,
    ENDED_BY=_ENDED_BY,
    IN_LINES=_IN_LINES,
    ITEMS=_ITEMS,
    MAX_DEPTH=MAX_DEPTH,
    VOID=_VOID,
    Line=Line,
    named=_named,
    says_address=says_address,
)
