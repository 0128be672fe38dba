"""Page -> tokens: the AltaVista normalisation (Manasse, "Finding similar things quickly", section
"Feature extraction": ignore case, discard most markup other than the URLs in HREFs and IMGs).

The contract:

* **Kept**, in document order: the words of the text and of the title, of what stands for an image (its ALT) and of the
  other attributes that are shown or read out; the HREF of every ``a`` and ``area``, and the SRC and the like of
  all that is shown, as URL tokens.  `dedup.page.flat` has the list.
* **Kept apart**: data in scripts and attributes, and a digest of what can't be read (`dedup.page.data`); and signs, such as the
  ticks and stars of a table, and attributes that only draw something: pages that differ in these are not equal, and have the
  same tokens.
* **Dropped**: comments, processing instructions and the rest of the markup.  Markup separates words.
* **Folded**: text is NFKC-normalised and case-folded; zero-width characters vanish.  A word is a run of
  letters, digits, underscores and their combining marks.  Scripts written without spaces (Han, kana,
  Thai, Lao, Khmer, Burmese) give one token for each two neighbours.  In title and heading, runs of the signs
  of ASCII that programs use are words, too.
* **URL tokens** start with ``/``, which no word does.  They are resolved against the page (or its
  ``base``), lose scheme, fragment, session and click-tracking parameters, and what they share with the
  page's own address: its host and the folders they have in common, so that a mirror under another path,
  or the next version of a manual, has the same tokens.  Other hosts are kept (``//host/path``), and links between
  mirrors have one name on either side (`dedup.page.mirrors`).  Values that
  look like nothing but an id go, unless they are all that tells two links of the page apart.  Links
  within the page, links that are not http(s), and URLs over 2,000 characters are dropped.  Of what is shown, such as
  an image, ids go from the query alone.  Nothing is
  resolved against an address of more than 20 folders.

>>> page = '<title>Storm</title><p>The <b>Crawler</b><a href="/Docs/?PHPSESSID=9f&v=2#top">reads</a>'
>>> extract(parse(page), "http://example.org/a/").tokens
['storm', 'the', 'crawler', '/docs/?v=2', 'reads']

Where markup is broken, the words are those that libxml2 sees: ``one</i>two`` is one word to it.

This module does not know about fingerprints.  Everything here takes time linear in the size of the page, and
no page makes it raise.
"""

import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from secrets import token_hex
from typing import NamedTuple

from lxml import etree

from dedup.page.data import read_data
from dedup.page.heading import address_words, place, shared
from dedup.page.ids import MAX_URL
from dedup.page.limits import MAX_TOKENS
from dedup.page.mirrors import named_alike
from dedup.page.shell import is_shell
from dedup.page.urls import folder, join, source_tokens, usable_base
from dedup.page.walk import Contents, walk
from dedup.page.words import without_letters

#: libxml2's XML_ERR_RESOURCE_LIMIT, for which older versions of lxml have no name.
RESOURCE_LIMIT = 114
#: Characters that html.parser is given at most, since it takes quadratic time on broken tags.
SECOND_OPINION = 4_096
#: What is put behind a text, which no page can have, since nobody can guess it: what the parser has read to its end has it.
_END = token_hex(8)
#: The last element of a tree that has not all of its text.  The names that a parser finds are in lower case.
CUT_OFF = "CUT-OFF"


class Page(NamedTuple):
    """The tokens of a page, and why it can't be judged by them, if it can't.

    The reason is "truncated" where a part of the page is missing, because the parser has stopped before its end
    or it lies beyond `MAX_TOKENS`; "scripted" where the page shows little but the shell that its scripts fill,
    and carries no data; "empty" where the page has no tokens; or one of those that
    `dedup.page.limits.unreadable` gives, or "internal_error" where reading it has failed, and then nothing of the page
    was read.
    """

    tokens: Sequence[str]  #: words and URL tokens in document order
    links: int  #: how many different URLs its HREFs name
    reason: str | None = None  #: None for a page that was read as a whole
    #: Runs of tokens, from ... to before ..., that are marked as chrome.
    chrome: tuple[tuple[int, int], ...] = ()
    heading: tuple[str, ...] = ()  #: words of the title and of the first h1
    names: tuple[str, ...] = ()  #: those of them that its heading says, too
    place: str = ""  #: its path, but for hosts and versions
    data: tuple[str, ...] = ()  #: tokens of its data, the last a digest of what can't be read, if anything
    #: What no token says of it: signs, and attributes that are not read.  It makes pages unequal, and no more.
    signs: bytes = b""
    canonical: str = ""  #: the URL that it says it should be known by; "" if it names none
    body: bytes = b""  #: of a page that is no text: a digest of all its bytes, by which alone it is judged
    markup: str = ""  #: all that a reader, a script or a link could see of it: its text as it was read


def parse(text: str) -> etree._Element:
    """Returns the lxml tree of a page, parsed as Scrapy's selectors do.

    Where lxml finds no body in a page that has some text (an unclosed comment or title swallows it),
    html.parser gives a second opinion on its first 4,096 characters.
    """
    root = parse_whole(text, _parse)
    if root.find("body") is None and root.find("frameset") is None and text.strip():
        from bs4 import BeautifulSoup  # not above: few pages need it
        from bs4.exceptions import ParserRejectedMarkup

        with warnings.catch_warnings(), suppress(ParserRejectedMarkup):
            warnings.simplefilter("ignore")
            second = _parse(str(BeautifulSoup(text[:SECOND_OPINION], "html.parser")))
            if second.find("body") is not None:
                if len(text) > SECOND_OPINION:
                    etree.SubElement(second, CUT_OFF)
                return second
    return root


def parse_whole(text: str, parse: Callable[[str], etree._Element]) -> etree._Element:
    """Returns the tree that ``parse`` makes of a page; `extract` knows it if the parser has stopped before its end.

    A parser stops where it lacks memory, at its greatest depth, and within a tag that never ends, and need not say so.
    """
    text = text.strip()
    root = parse(f"{text}<!--{_END}-->")
    last, said = _last(root)
    if isinstance(last, etree._Comment) and said == _END:
        etree.Element("x").append(last)  # out of the tree, in which it may have no parent
    elif len(root):
        said, mark, _ = said.rpartition(f"<!--{_END}")
        # A comment, title or script that never ends has the mark in its text, which lxml does not set to just anything.
        root = parse(text)
        if not mark or _last(root)[1].rstrip("-!") != said.rstrip("-!"):
            etree.SubElement(root, CUT_OFF)
    return root


def _last(root: etree._Element) -> tuple[etree._Element, str]:
    """Returns the last node of a tree, and the text with which it ends."""
    last = root
    while (after := last.getnext()) is not None:
        last = after
    while len(last):
        last = last[-1]
    return last, last.tail or last.text or ""


def _parse(text: str) -> etree._Element:
    data = text.strip().replace("\x00", "").encode("utf-8", "replace") or b"<html/>"
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True, no_network=True)
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError:  # a document of which nothing is left
        root = None
    return root if root is not None else etree.fromstring(b"<html/>", parser)


def extract(root: etree._Element, url: str = "", keep_urls: bool = True) -> Page:
    """Returns the tokens of a parsed page, and does not change its tree.  O(size of the tree).

    ``url`` is the page's own address, against which its links are resolved.

    >>> page = extract(parse("<title>Storm 2.0</title><nav>Home</nav><h1>Bolts</h1><p>A bolt"))
    >>> page.tokens, page.chrome, page.heading
    (['storm', '2', '0', 'home', 'bolts', 'a', 'bolt'], ((3, 4),), ('storm', '2', '0', 'bolts'))
    """
    found = walk(root, usable_base(url), keep_urls)
    page = _page(found, url, _is_truncated(root))
    if not found.data or page.reason == "truncated":
        return page
    base = folder(found.base)

    def data_token(value: str) -> str | None:
        token = source_tokens(value, found.base, base) if keep_urls else None
        return token and token[1]

    data = read_data(found.data, data_token)
    has_scripts = any(kind[:1] != "@" and kind != "style" for kind, _ in found.data)
    if has_scripts and not data.is_state and is_shell(found.left, root):
        return page._replace(reason="scripted")
    return page._replace(data=data.tokens) if page.reason is None else page


def _page(found: Contents, url: str, truncated: bool) -> Page:
    """Returns the page that was found."""
    tokens, links = found.tokens, found.links
    if len(tokens) > MAX_TOKENS:
        return Page(tokens[: MAX_TOKENS + 1], links, "truncated")
    return Page(
        named_alike(tokens, usable_base(url)),
        links,
        "truncated" if truncated else None if tokens else "empty",
        found.chrome,
        found.heading,
        shared(address_words(url), found.heading),
        place(url),
        canonical=_canonical(found.related, found.base),
        signs=without_letters(found.signs),
    )


def _canonical(related: Iterable[tuple[str, str]], base: str) -> str:
    """Returns the canonical URL that a page names, the first if there are several; "" without one."""
    for rel, href in related:
        if "canonical" in rel.lower().split():
            named = join(base, href.strip())
            return named if len(named) <= MAX_URL and named.startswith(("http://", "https://")) else ""
    return ""


def _is_truncated(root: etree._Element) -> bool:
    if len(root) and root[-1].tag == CUT_OFF:
        return True
    parser = root.getroottree().parser  # of a tree that others have made
    if parser is None:
        return False
    return any(error.type == RESOURCE_LIMIT for error in parser.error_log)
