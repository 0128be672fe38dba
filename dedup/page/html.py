"""Page -> tokens: the AltaVista normalisation (Manasse, "Finding similar things quickly", section
"Feature extraction": ignore case, discard most markup other than the URLs in HREFs and IMGs).

The contract:

* **Kept**, in document order: the words of the visible text and of the title; the HREF of every
  ``a`` and ``area`` and the SRC of every ``img``, as URL tokens.
* **Dropped**: ``script``, ``style``, ``noscript``, ``template``, comments, processing instructions
  and the rest of the markup.  Markup separates words.  Data in scripts is kept apart (`dedup.page.data`).
* **Folded**: text is NFKC-normalised and case-folded; zero-width characters vanish.  A word is a run of
  letters, digits, underscores and their combining marks.  Scripts written without spaces (Han, kana,
  Thai, Lao, Khmer, Burmese) give one token per character.
* **URL tokens** start with ``/``, which no word does.  They are resolved against the page (or its
  ``base``), lose scheme, fragment, session and click-tracking parameters, and what they share with the
  page's own address: its host and the folders they have in common, so that a mirror under another path,
  or the next version of a manual, has the same tokens.  Other hosts are kept (``//host/path``).  Values that
  look like nothing but an id go, unless they are all that tells two links of the page apart.  Links
  within the page, links that are not http(s), and URLs over 2,000 characters are dropped.  Nothing is
  resolved against an address of more than 20 folders.

>>> page = '<title>Storm</title><p>The <b>Crawler</b><a href="/Docs/?PHPSESSID=9f&v=2#top">reads</a>'
>>> extract(parse(page), "http://example.org/a/").tokens
['storm', 'the', 'crawler', '/docs/?v=2', 'reads']

Where markup is broken, the words are those that libxml2 sees: ``one</i>two`` is one word to it.

This module does not know about fingerprints.  Everything here takes time linear in the size of the page, and
no page makes it raise.
"""

import re
import warnings
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from typing import NamedTuple, cast

from bs4 import BeautifulSoup
from bs4.exceptions import ParserRejectedMarkup
from lxml import etree

from dedup.page.data import read_data
from dedup.page.heading import address_words, place, shared
from dedup.page.ignore import NOTHING, Ignore
from dedup.page.limits import MAX_TOKENS
from dedup.page.shell import DROPPED, is_shell
from dedup.page.urls import MAX_URL, join, strip_ids, url_token, usable_base
from dedup.page.words import is_url, split_tokens

__all__ = ["Page", "extract", "parse"]

#: The attribute that holds a URL worth keeping, per element.
URL_ATTRIBUTES = {"a": "href", "area": "href", "img": "src"}
#: Elements, and ARIA roles, that mark the chrome of a site: what is around a page, and on many pages alike.
CHROME = frozenset({"nav", "aside", "form", "menu"})
CHROME_ROLES = frozenset({"navigation", "banner", "contentinfo", "search", "complementary", "form", "menu"})
#: Elements that are chrome unless they are the header or footer of what a page is about.
MARGINS = frozenset({"header", "footer"})
CONTENT = frozenset({"main", "article", "section"})
#: Elements that say what a page is called; of the second, the first in the page.
TITLE, HEADING = "title", "h1"
#: libxml2's XML_ERR_RESOURCE_LIMIT, for which older versions of lxml have no name.
RESOURCE_LIMIT = 114
#: Characters that html.parser is given at most, since it takes quadratic time on broken tags.
SECOND_OPINION = 4_096

# Text is normalised in batches: one character may become 18, and a page of those would not fit into memory.
_BATCH = re.compile(r".{1,65535}(?:\s|$)|.{65536}", re.DOTALL)


#: Elements of which `extract` takes note.
_STRUCTURE = CHROME | MARGINS | CONTENT | {TITLE, HEADING}
_RELATED = cast(Callable[[etree._Element], list[etree._Element]], etree.XPath("//link[@rel and @href]"))
_WITH_ROLE = cast(Callable[[etree._Element], list[etree._Element]], etree.XPath("//*[@role]"))


class _Part(Enum):
    """What a run of a page's pieces belongs to."""

    TEXT = 0
    CHROME = 1
    NAME = 2


class Page(NamedTuple):
    """The tokens of a page, and why it can't be judged by them, if it can't.

    The reason is "truncated" where a part of the page is missing, because it is nested deeper than the parser
    goes or lies beyond `MAX_TOKENS`; "scripted" where the page shows little but the shell that its scripts fill,
    and carries no data; "empty" where the page has no tokens; or one of those that
    `dedup.page.limits.unreadable` gives, and then nothing of the page was read.
    """

    tokens: list[str]  #: words and URL tokens in document order
    links: int  #: how many different URLs its HREFs name
    reason: str | None = None  #: None for a page that was read as a whole
    chrome: tuple[
        tuple[int, int], ...
    ] = ()  #: runs of tokens, from ... to before ..., that are marked as chrome
    heading: tuple[str, ...] = ()  #: words of the title and of the first h1
    address: tuple[str, ...] = ()  #: words of the last part of its address
    names: tuple[str, ...] = ()  #: those of them that its heading says, too
    place: str = ""  #: its path, but for hosts and versions
    data: tuple[str, ...] = ()  #: tokens of the data in its scripts
    canonical: str = ""  #: the URL that it says it should be known by; "" if it names none
    body: bytes = b""  #: of a page that is no text: a digest of all its bytes, by which alone it is judged


def parse(text: str) -> etree._Element:
    """The lxml tree of a page, parsed as Scrapy's selectors do.

    Where lxml finds no body in a page that has some text (an unclosed comment or title swallows it),
    html.parser gives a second opinion on its first 4,096 characters.
    """
    root = _parse(text)
    if root.find("body") is None and root.find("frameset") is None and text.strip():
        with warnings.catch_warnings(), suppress(ParserRejectedMarkup):
            warnings.simplefilter("ignore")
            second = _parse(str(BeautifulSoup(text[:SECOND_OPINION], "html.parser")))
            if second.find("body") is not None:
                return second
    return root


def _parse(text: str) -> etree._Element:
    data = text.strip().replace("\x00", "").encode("utf-8", "replace") or b"<html/>"
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True, no_network=True)
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError:  # a document of which nothing is left
        root = None
    return root if root is not None else etree.fromstring(b"<html/>", parser)


def extract(root: etree._Element, url: str = "", keep_urls: bool = True, ignore: Ignore = NOTHING) -> Page:
    """The tokens of a parsed page, whose tree is left as it is.  O(size of the tree).

    ``url`` is the page's own address, against which its links are resolved; ``ignore`` finds what doesn't count.

    >>> page = extract(parse("<title>Storm 2.0</title><nav>Home</nav><h1>Bolts</h1><p>A bolt"))
    >>> page.tokens, page.chrome, page.heading
    (['storm', '2', '0', 'home', 'bolts', 'a', 'bolt'], ((3, 4),), ('storm', '2', '0', 'bolts'))
    """
    runs: list[tuple[_Part, list[str]]] = [(_Part.TEXT, [])]
    links: set[str] = set()
    bare: dict[str, set[str]] = {}  # URL tokens by what is left of them without ids
    scripts: list[etree._Element] = []
    url = base = usable_base(url)
    with_role = frozenset(node for node in _WITH_ROLE(root) if _has_chrome_role(node))
    ignored, strip = ignore.elements(root), ignore.reader()
    open_elements: list[etree._Element] = []
    # How many elements were open when one of the kind opened, itself included; 0: none is open.
    dropping = chrome = content = named = 0
    part, unnamed = _Part.TEXT, {TITLE, HEADING}

    def add(piece: str) -> None:
        if runs[-1][0] is not part:
            runs.append((part, []))
        runs[-1][1].append(piece)

    def close() -> None:
        nonlocal dropping, chrome, content, named, part
        tail = open_elements.pop().tail
        depth = len(open_elements)
        if max(dropping, chrome, content, named) > depth:
            dropping, chrome, content, named = (
                at if at <= depth else 0 for at in (dropping, chrome, content, named)
            )
            part = _Part.NAME if named else _Part.CHROME if chrome else _Part.TEXT
        if tail and not dropping and not tail.isspace():
            add(strip(tail).replace("/", " "))

    # iter() and our own stack: iterwalk and itertext take quadratic time on runs of comments.
    for node in root.iter():
        parent = node.getparent()
        while open_elements and open_elements[-1] is not parent:
            close()
        open_elements.append(node)
        tag = node.tag
        if dropping or not isinstance(tag, str):  # a comment: only what follows it counts
            continue
        if tag in DROPPED or node in ignored:
            dropping = len(open_elements)
            if tag == "script" and node not in ignored:
                scripts.append(node)
            continue
        if tag in _STRUCTURE or node in with_role:
            if not content and tag in CONTENT:
                content = len(open_elements)
            elif not named and tag in unnamed:
                unnamed.discard(tag)
                named, part = len(open_elements), _Part.NAME
            elif not chrome and (tag in CHROME or node in with_role or (tag in MARGINS and not content)):
                chrome = len(open_elements)
                part = _Part.NAME if named else _Part.CHROME
        if (attribute := URL_ATTRIBUTES.get(tag)) and (value := node.get(attribute)):
            if token := url_token(value, base):
                if keep_urls:
                    add(token)
                    if (stripped := strip_ids(token)) != token:
                        bare.setdefault(stripped, set()).add(token)
                if attribute == "href":
                    links.add(token)
        elif tag == "base" and base == url and (value := node.get("href")):
            base = usable_base(join(url, value)) or url
        text = node.text
        if text and not text.isspace():
            add(strip(text).replace("/", " "))
    while open_elements:
        close()
    _leave_out_ids(runs, bare)
    page = _joined(runs, url, len(links), _is_truncated(root))._replace(canonical=_canonical(root, base))
    if not scripts or page.reason == "truncated":
        return page

    def data_token(value: str) -> str | None:
        token = url_token(value, base) if keep_urls else None
        return token and strip_ids(token)

    data = read_data(((node.get("type") or "", node.text or "") for node in scripts), data_token)
    if not data and is_shell(page.tokens, page.chrome, root):
        return page._replace(reason="scripted")
    return page._replace(data=data)


def _canonical(root: etree._Element, base: str) -> str:
    """The canonical URL that a page names, the first if there are several; "" without one."""
    for node in _RELATED(root):
        if "canonical" in (node.get("rel") or "").lower().split():
            named = join(base, (node.get("href") or "").strip())
            return named if len(named) <= MAX_URL and named.startswith(("http://", "https://")) else ""
    return ""


def _leave_out_ids(runs: list[tuple[_Part, list[str]]], bare: dict[str, set[str]]) -> None:
    """Replaces URL tokens by what is left of them without ids, where that is enough to tell them apart."""
    replaced = {token: stripped for stripped, tokens in bare.items() if len(tokens) == 1 for token in tokens}
    if replaced:
        for _, pieces in runs:
            pieces[:] = (replaced.get(piece, piece) for piece in pieces)


def _joined(runs: list[tuple[_Part, list[str]]], url: str, links: int, truncated: bool) -> Page:
    """The page that runs of pieces make; between two pieces there is always markup, which separates words."""
    tokens: list[str] = []
    marked: list[tuple[int, int]] = []
    heading: list[str] = []
    for part, pieces in runs:
        start, text = len(tokens), " ".join(pieces)
        for batch in [text] if text.isascii() else _BATCH.findall(text):
            tokens += split_tokens(batch)
            if len(tokens) > MAX_TOKENS:
                return Page(tokens, links, "truncated")
        if part is _Part.CHROME:
            marked.append((start, len(tokens)))
        elif part is _Part.NAME:
            heading += [token for token in tokens[start:] if not is_url(token)]
    reason = "truncated" if truncated else None if tokens else "empty"
    address = address_words(url)
    return Page(
        tokens, links, reason, tuple(marked), tuple(heading), address, shared(address, heading), place(url)
    )


def _has_chrome_role(node: etree._Element) -> bool:
    return (node.get("role") or "").strip().lower() in CHROME_ROLES


def _is_truncated(root: etree._Element) -> bool:
    parser = root.getroottree().parser
    if parser is None:
        return False
    return any(error.type == RESOURCE_LIMIT for error in parser.error_log)
