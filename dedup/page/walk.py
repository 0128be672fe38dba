"""Tree -> words and URLs: the walk over the nodes of a page.

There are two walks, which find the same: one in Python, and a compiled one, which is used where the package
was built with a C compiler.
"""

from enum import Enum
from functools import lru_cache, partial
from itertools import accumulate, pairwise
from types import SimpleNamespace
from typing import NamedTuple

from lxml import etree

from dedup.compiled import fast
from dedup.page import flat, urls, words
from dedup.page.limits import MAX_TOKENS
from dedup.page.tokens import Breaks, Ranges, Tokens

#: URL tokens whose octets are remembered.
REMEMBERED = 1 << 14
#: What links lead to that is no page.
ADDRESSES = ("mailto:", "tel:")
#: Elements that neither begin nor end a block.
NO_BLOCKS = flat.INLINE | flat.CODE | {flat.IGNORED, "base"}


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

    ``url`` is that against which links are resolved.  The tokens find where blocks, such as paragraphs, list items and
    boxes, begin and end among them: what changes in a page from one answer to the next is mostly all of a block, such as an
    advert.  Where several do, the outermost counts.  Each has the signs that stand before it, but behind the one before.

    >>> walk(etree.HTML("<div>one story<p>and <b>more</b> of it!</div><p>next"), "", True).tokens.find_breaks()
    [(0, 1, b''), (2, 4, b''), (6, 3, b'!'), (7, 1, b'')]
    """
    return (walk_fast if fast else walk_in_python)(root, url, keep_urls)


#: What the compiled walk asks Python for.
_RULES = SimpleNamespace(
    ATTRIBUTES=flat.ATTRIBUTES,
    CHROME=flat.CHROME,
    CHROME_ROLES=flat.CHROME_ROLES,
    CODE=flat.CODE,
    CONTENT=flat.CONTENT,
    HEADING=flat.HEADING,
    IGNORED=flat.IGNORED,
    INLINE=flat.INLINE,
    MARGINS=flat.MARGINS,
    SIGNS=words.SIGNS,
    TITLE=flat.TITLE,
    base_of=urls.base_of,
    datum_name=flat.datum_name,
    fold_each=words.fold_each,
    folder=urls.folder,
    plain_folder=urls.plain_folder,
    remembered=words.remembered,
    separators=words.separators,
    source_tokens=urls.source_tokens,
    url_tokens=urls.url_tokens,
)


def walk_fast(root: etree._Element, url: str, keep_urls: bool) -> Contents:
    assert fast
    octets, count, *found, edges = fast.walk(root, url, keep_urls, _RULES)
    contents = Contents(Tokens(octets, count), *found)
    contents.tokens.find_breaks = partial(fast.breaks, edges, contents.signs, words.without_letters)
    return contents


def walk_in_python(root: etree._Element, url: str, keep_urls: bool) -> Contents:
    met = _Walk(url, keep_urls)
    met.visit(root)
    octets, chrome, heading, left = met.settle()
    tokens = Tokens(octets[:-1], octets.count(0), met.find_breaks)
    found = len(met.links), met.data, met.related, met.base, b"".join(met.signs)
    return Contents(tokens, chrome, heading, left, *found)


class _Walk:
    """What was met of a page, and where in it the walk is."""

    def __init__(self, url: str, keep_urls: bool) -> None:
        self.base = self._url = url
        self._folder = urls.folder(url)
        self._keep_urls = keep_urls
        self._pieces: list[bytes] = []  # tokens, each with a NUL behind it
        self._unfolded = 0  # tokens of texts that are not ASCII
        self.links: set[str] = set()
        self.data: list[tuple[str, str]] = []
        self.related: list[tuple[str, str]] = []
        self.signs: list[bytes] = []
        self._titles: list[str] = []  # of links, and their programs
        self._bare: dict[str, dict[str, list[int]]] = {}  # URL tokens by what is left of them without ids
        # The outermost open element of each of these kinds.
        self._named: etree._Element | None = None
        self._content: etree._Element | None = None
        self._chrome: etree._Element | None = None
        self._dropping: etree._Element | None = None
        self._unnamed = {flat.TITLE, flat.HEADING}
        self._parts: list[tuple[Part, int]] = [(Part.TEXT, 0)]  # which begin before which piece
        self._blocks: list[etree._Element] = []  # that are open
        self._breaks: list[tuple[int, int, int]] = []  # before which piece, how deep, before which signs

    def visit(self, root: etree._Element) -> None:
        for event, node in etree.iterwalk(root, events=("start", "end", "comment", "pi")):
            if event == "start":
                self._begin(node, str(node.tag))
                text = node.text
            else:
                if event == "end":
                    self._end(node)
                text = node.tail if node is not root else None
            if text and self._dropping is None and text.strip(" \n\t\r\f"):  # most are spaces between tags
                self._add_text(text)

    def _begin(self, node: etree._Element, tag: str) -> None:
        if tag == "link" and node.get("rel") is not None and node.get("href") is not None:
            self.related.append((node.get("rel", ""), node.get("href", "")))
        if self._dropping is not None:
            return
        if tag in flat.CODE or tag == flat.IGNORED:
            self._dropping = node
            if tag in flat.CODE:
                kind = tag if tag == "style" else node.get("type", "").replace("\n", " ")
                self.data.append((kind, node.text or ""))
            return
        has_chrome_role = flat.is_chrome_role(node.get("role", ""))
        if tag not in NO_BLOCKS or has_chrome_role:
            self._blocks.append(node)
            self._note_break()
        self._open_part(node, tag, has_chrome_role)
        if tag == "base":
            if self.base == self._url and (value := node.get("href")):
                self.base = urls.base_of(self._url, value)
                self._folder = urls.folder(self.base)
        else:
            for name, value in node.items():
                if mark := flat.ATTRIBUTES.get(name, "d" if name[:5] == "data-" else ""):
                    self._add_attribute(node, tag, name, value, mark)

    def _open_part(self, node: etree._Element, tag: str, has_chrome_role: bool) -> None:
        if self._content is None and tag in flat.CONTENT:
            self._content = node
        elif self._named is None and tag in self._unnamed:
            self._unnamed.discard(tag)
            self._named = node
            self._note_part()
        elif self._chrome is None:
            is_margin = tag in flat.MARGINS and self._content is None
            if is_margin or tag in flat.CHROME or has_chrome_role:
                self._chrome = node
                self._note_part()

    def _end(self, node: etree._Element) -> None:
        if node is self._dropping:
            self._dropping = None
            return
        if self._blocks and node is self._blocks[-1]:
            self._note_break()
            self._blocks.pop()
        if node is self._content:
            self._content = None
        elif node is self._named:
            self._named = None
            self._note_part()
        elif node is self._chrome:
            self._chrome = None
            self._note_part()

    def _note_break(self) -> None:
        self._breaks.append((len(self._pieces), len(self._blocks), len(self.signs)))

    def _note_part(self) -> None:
        part = Part.TEXT if self._chrome is None else Part.CHROME
        self._parts.append((part if self._named is None else Part.NAME, len(self._pieces)))

    def _add_attribute(self, node: etree._Element, tag: str, name: str, value: str, mark: str) -> None:
        is_link = tag in ("a", "area")
        if mark == "w" or (mark == "l" and not is_link and tag != "link"):
            self._add_text(value)
        elif mark == "h" and is_link:
            self._add_href(value)
        elif mark == "i" or (mark == "h" and tag != "link") or (mark == "o" and tag == "object"):
            self._add_source(value)
        elif mark == "t":
            if first := value.split(None, 1)[:1]:
                self._add_source(first[0].rstrip(","))
        elif mark == "v" and tag in ("input", "button"):
            kind, its = (node.get(each, "").replace("\n", " ") for each in ("type", "name"))
            if (key := flat.datum_name(tag, kind, its)) is None:
                self._add_text(value)
            else:
                self.data.append((key, value))
        elif mark in ("v", "e"):
            self._add_sign(value)
        elif mark == "d" or (mark == "c" and (tag != "meta" or _is_told(node))):
            self.data.append(("@" + name, value))
        elif mark == "y" and "url(" in value:
            self.data.append(("@style", value))
        elif mark in ("u", "y") or (mark == "l" and is_link):
            self._titles.append(value + "\0")

    def _add_text(self, text: str) -> None:
        if self._unfolded > MAX_TOKENS:  # of ASCII, a page is too short to have many more
            return
        piece = words.fold_text(text) if self._named is None else words.fold_name(text)
        if not text.isascii():
            self._unfolded += piece.count(0)
        self._pieces.append(piece)
        self.signs.append(words.signs_of(text))

    def _add_href(self, value: str) -> None:
        if value.startswith("javascript:"):
            self._titles.append(value + "\0")
        elif value.startswith(ADDRESSES):
            self._add_sign(value)
        elif token := self._add_url(urls.url_tokens(value, self.base, self._folder)):
            self.links.add(token)

    def _add_source(self, value: str) -> None:
        if value.startswith("data:"):
            self.data.append(("@data:", value))
        else:
            self._add_url(urls.source_tokens(value, self.base, self._folder))

    def _add_url(self, found: tuple[str, str] | None) -> str | None:
        if found is None:
            return None
        token, stripped = found
        if self._keep_urls:
            if stripped != token:
                self._bare.setdefault(stripped, {}).setdefault(token, []).append(len(self._pieces))
            self._pieces.append(_url_octets(token))
        return token

    def _add_sign(self, value: str) -> None:
        self.signs.append(value.encode("utf-8", "replace") + b"\0")

    def find_breaks(self) -> Breaks:
        before = [0, *accumulate(piece.count(0) for piece in self._pieces)]
        breaks: dict[int, tuple[int, bytes]] = {}
        start = 0
        for piece, depth, end in self._breaks:
            signs = words.without_letters(b"".join(self.signs[start:end]))
            outer, met = breaks.get(before[piece], (depth, b""))
            breaks[before[piece]] = min(depth, outer), met + signs
            start = end
        return [(at, depth, signs) for at, (depth, signs) in breaks.items()]

    def settle(self) -> tuple[bytes, Ranges, tuple[str, ...], int]:
        """Returns the tokens, each with a NUL behind it; the runs of chrome and the words of the heading; and how many words
        are outside chrome."""
        if self._titles:
            self.data.append(("@links", "".join(self._titles)))
        # Where ids are not needed to tell URLs apart, they are left out.
        for stripped, tokens in self._bare.items():
            if len(tokens) == 1:
                for place in next(iter(tokens.values())):
                    self._pieces[place] = _url_octets(stripped)
        runs: list[bytes] = []
        chrome: list[tuple[int, int]] = []
        heading: list[str] = []
        count = left = 0
        for (part, start), (_, end) in pairwise((*self._parts, (Part.TEXT, len(self._pieces)))):
            if not (run := b"".join(self._pieces[start:end])):
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


def _is_told(meta: etree._Element) -> bool:
    """Whether the content of an element META counts: that of a description, or of none that has a name."""
    name = meta.get("name")
    return meta.get("http-equiv") is None if name is None else name.lower() == "description"


@lru_cache(maxsize=REMEMBERED)
def _url_octets(token: str) -> bytes:
    return token.lower().encode() + b"\0"
