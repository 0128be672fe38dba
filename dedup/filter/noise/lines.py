"""Markup -> lines: a line is what stands between two tags of blocks, with the blocks that it is in.

A block of several lines that stands beside others of its kind, such as a product of a list, is a card: one line, which comes
and goes as a whole.  These are items of lists, rows of tables, terms with what is said of them, and blocks of one name and class,
in which no two such are beside each other.

Nothing that a reader, a script or a link could see is left out: tags, attributes and their values, words in their case, signs,
and the spaces that count.  Only what a page says of its own address is the same on all of them.

>>> for line in lines_of("<ul class=menu><li>Home <b>now</b><li><a href='?id=7'>10 Mb</a></ul>", "http://a.org/view?id=7"):
...     print(line.place, line.path, *line.tokens)
ul.menu0 ul.menu <ul  class= menu <>
ul.menu0/li ul.menu/li <li Home <b now </b
ul.menu0/li ul.menu/li <li <a  href= @ <> 10 Mb </a
>>> for line in lines_of("<ul><li><h4>Lamp</h4><p>7 EUR<li><h4>Rope</h4><p>2 EUR</ul>", ""):
...     print(line.place, line.path, *line.tokens)
ul0 ul <ul
ul0/li ul/li <li <| <h4 Lamp <| <p 7 EUR
ul0/li ul/li <li <| <h4 Rope <| <p 2 EUR
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from operator import itemgetter
from types import SimpleNamespace
from typing import NamedTuple

from dedup.compiled import fast
from dedup.filter.noise.tokens import SELF, Values, spellings, tokens_in, values_in
from dedup.page.flat import CODE, INLINE
from dedup.page.tokenizer import Kind, tokenize

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
#: Elements that end where one of the others begins, with such elements in them.
_ENDED_BY = {
    **{name: frozenset({name}) for name in ("li", "p", "option", "tr")},
    **dict.fromkeys(("td", "th"), frozenset({"td", "th", "tr"})),
    "dt": frozenset({"dt"}),  # what is said of a term is in it
    "dd": frozenset({"dt", "dd"}),
}
#: Those that stand in any number beside each other.
_ITEMS = frozenset(["li", "tr", "td", "th", "dt", "dd", "option"])
#: Blocks within blocks that are told; what is nested more deeply is taken to be beside the last of them.
MAX_DEPTH = 64
#: Characters by which a block is called.
MAX_NAME = 32
_DIGITS = re.compile(r"\d+")
_IN_LINES = INLINE | {"br"}
#: Stands between the lines of a card.
BREAK = "<|"


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
    octets, values = markup.encode("utf-8", "surrogatepass"), Values(url, marks_like=marks_like)
    if fast:
        lines: list[Line] = fast.lines(octets, values, _RULES)
        return lines
    return _Reader(values).read(octets)


class _Run(NamedTuple):
    """A block that has been closed."""

    name: str  #: and class
    start: int  #: its lines, from here
    end: int  #: to before here
    is_plain: bool  #: no two that may be cards stand beside each other in it


class _Block(NamedTuple):
    """A block that is open."""

    tag: str
    name: str  #: and class
    path: str
    place: str
    start: int  #: its first line
    beside: Counter[str]  #: the blocks in it so far, by name and class
    inside: list[_Run]  #: the same


class _Reader:
    def __init__(self, values: Values) -> None:
        self._values = values
        self._open = [_Block("", "", "", "", 0, Counter(), [])]
        self._pre = 0  # how many of them keep their spaces
        self._line: list[str] = []
        self._found: list[Line] = []
        self._cards: list[_Run] = []  # blocks that are one line

    def read(self, octets: bytes) -> list[Line]:
        tag = ""
        for kind, start, end, text, attributes, _ in tokenize(octets, sections=True):
            if kind is Kind.TEXT:
                self._line += tokens_in(text, with_spaces=self._pre > 0 and tag not in CODE)
            elif kind is Kind.DOCTYPE or kind is Kind.COMMENT:
                if not octets.startswith(b"<!--", start):  # some are text in XHTML
                    self._line += tokens_in(octets[start:end].decode("utf-8", "surrogatepass"))
            elif (tag := text) in CODE:
                self._line += self._tag(tag, attributes) if kind is Kind.START else ()
            elif tag in _IN_LINES:
                self._line += (f"</{tag}",) if kind is Kind.END else self._tag(tag, attributes)
            elif not says_address(tag, attributes):
                self._end_line()
                if kind is Kind.START:
                    self._begin(tag, attributes)
                elif tag != "dt":
                    self._end(tag)
                if tag in _VOID:
                    self._end_line()
        self._end_line()
        self._close(1)
        self._closed(self._open[0])
        return _joined(self._found, self._cards)

    def _end_line(self) -> None:
        if self._line:
            self._found.append(Line(self._open[-1].path, tuple(self._line), self._open[-1].place))
            self._line = []

    def _begin(self, tag: str, attributes: dict[str, str]) -> None:
        opened = self._open
        at = len(opened)
        while (ended_by := _ENDED_BY.get(opened[at - 1].tag)) is not None:
            at -= 1
            if tag in ended_by:
                self._close(at)
        self._line = self._tag(tag, attributes)
        if tag not in _VOID and len(opened) <= MAX_DEPTH:
            self._pre += tag == "pre"
            name, (_, _, path, place, _, beside, _) = _named(tag, _class_in(self._line)), opened[-1]
            number = "" if tag in _ITEMS else beside[name]
            beside[name] += 1
            path, place = f"{path}/{name}".lstrip("/"), f"{place}/{name}{number}".lstrip("/")
            opened.append(_Block(tag, name, path, place, len(self._found), Counter(), []))

    def _end(self, tag: str) -> None:
        at = next((at for at in range(len(self._open) - 1, 0, -1) if self._open[at].tag == tag), None)
        if at is not None:
            self._close(at)

    def _close(self, at: int) -> None:
        while len(self._open) > at:
            block = self._open.pop()
            self._pre -= block.tag == "pre"
            run = _Run(block.name, block.start, len(self._found), self._closed(block))
            self._open[-1].inside.append(run)

    def _closed(self, block: _Block) -> bool:
        """Notes the blocks in it that are one line, and returns whether it is plain."""
        beside, inside = block.beside, block.inside
        self._cards += (
            run
            for run in inside
            if beside[run.name] > 1 and run.is_plain and run.end - run.start > 1 and _may_be_card(run.name)
        )
        return all(run.is_plain and (beside[run.name] == 1 or not _may_be_card(run.name)) for run in inside)

    def _tag(self, tag: str, attributes: dict[str, str]) -> list[str]:
        found = [f"<{tag}"]
        for name, value in attributes.items():
            found += (f" {name}=", *self._values.tokens(value, name))
        return [*found, "<>"] if attributes else found


def at_one(lines: Sequence[Line], url: str, others: Sequence[Line]) -> list[Line]:
    """Returns lines of a page in which links to another page, at a URL, are links to itself, but for those that are among others.

    >>> [line.tokens for line in at_one(lines_of("<p><a href='/view?id=7#top'>up</a>", ""), "http://a.org/view?id=7", [])]
    [('<p', '<a', ' href=', '@', 'top', '<>', 'up', '</a')]
    """
    own, name, _ = spellings(url)
    spelled, there = {tuple(tokens_in(each)) for each in {*own, name} - {""}}, {*others}
    return [line if line in there else line._replace(tokens=_at_one(line.tokens, spelled)) for line in lines]


def _at_one(tokens: tuple[str, ...], spelled: AbstractSet[tuple[str, ...]]) -> tuple[str, ...]:
    found, last = list[str](), 0
    for start, end in values_in(tokens):
        address = next((at for at in range(start, end) if tokens[at] == "#"), end)
        if tokens[start:address] in spelled:
            found += (*tokens[last:start], SELF)
            last = min(address + 1, end)
    return (*found, *tokens[last:])


def is_card(line: Line) -> bool:
    """Whether a line is a card."""
    return BREAK in line.tokens


def has_label(path: str) -> bool:
    """Whether lines of a path begin with what the rest is said of: the rows of a table, and terms."""
    return _tag_of(path.rpartition("/")[2]) in {"tr", "dt"}


def is_one_place(place: str) -> bool:
    """Whether there is no other block of its kind in a place: neither is it an item of a list, nor in one.

    >>> [is_one_place(place) for place in ("div0/p2", "ul0/li.item-0", "ul0/li/p1")]
    [True, False, False]
    """
    return _ITEMS.isdisjoint(map(_tag_of, place.split("/")))


def _tag_of(name: str) -> str:
    return name.partition(".")[0]


def _may_be_card(name: str) -> bool:
    """Whether a block is of a kind by its name and class."""
    return "." in name or name in {"li", "tr", "dt"}


def _joined(lines: list[Line], cards: list[_Run]) -> list[Line]:
    """Returns the lines, of which those of one card are one."""
    found, last = list[Line](), 0
    for _, start, end, _ in sorted(cards, key=itemgetter(1)):
        if start < last:  # it is in one
            continue
        path, first, place = lines[start]
        tokens = [*first]
        for line in lines[start + 1 : end]:
            tokens += (BREAK, *line.tokens)
        found += (*lines[last:start], Line(path, tuple(tokens), group_of(place)))
        last = end
    return found + lines[last:]


def group_of(place: str) -> str:
    """Returns what a block and its siblings of one name and class have in common.

    >>> group_of("ul.menu0/li"), group_of("aside0/p2")
    ('ul.menu0/li', 'aside0/p')
    """
    return place.rstrip("0123456789")


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


#: What the compiled reader asks Python for.
_RULES = SimpleNamespace(
    CODE=CODE,
    ENDED_BY=_ENDED_BY,
    IN_LINES=_IN_LINES,
    ITEMS=_ITEMS,
    MAX_DEPTH=MAX_DEPTH,
    VOID=_VOID,
    Line=Line,
    joined=_joined,
    may_be_card=_may_be_card,
    named=_named,
    says_address=says_address,
)
