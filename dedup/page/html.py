"""Page -> tokens: the AltaVista normalisation (Manasse, "Finding similar things quickly", section
"Feature extraction": ignore case, discard most markup other than the URLs in HREFs and IMGs).

The contract:

* **Kept**, in document order: the words of the visible text and of the title; the HREF of every
  ``a`` and ``area`` and the SRC of every ``img``, as URL tokens.
* **Dropped**: ``script``, ``style``, ``noscript``, ``template``, comments, processing instructions
  and the rest of the markup.  Markup separates words.
* **Folded**: text is NFKC-normalised and case-folded; zero-width characters vanish.  A word is a run of
  letters, digits, underscores and their combining marks.  Scripts written without spaces (Han, kana,
  Thai, Lao, Khmer, Burmese) give one token per character.
* **URL tokens** start with ``/``, which no word does.  They are resolved against the page (or its
  ``base``), lose scheme, fragment, session and click-tracking parameters, and what they share with the
  page's own address: its host and the folders they have in common, so that a mirror under another path,
  or the next version of a manual, has the same tokens.  Other hosts are kept (``//host/path``).  Links
  within the page, links that are not http(s), and URLs over 2,000 characters are dropped.  Nothing is
  resolved against an address of more than 20 folders.

>>> page = '<title>Storm</title><p>The <b>Crawler</b><a href="/Docs/?PHPSESSID=9f&v=2#top">reads</a>'
>>> extract(parse(page), "http://example.org/a/").tokens
['storm', 'the', 'crawler', '/docs/?v=2', 'reads']

Where markup is broken, the words are those that libxml2 sees: ``one</i>two`` is one word to it.

This module does not know about fingerprints.  Everything here takes time linear in the size of the page, and
no page makes it raise.
"""

import codecs
import re
import unicodedata
import warnings
from contextlib import suppress
from functools import cache
from typing import NamedTuple

from bs4 import BeautifulSoup, UnicodeDammit
from bs4.exceptions import ParserRejectedMarkup
from lxml import etree

from dedup.page.limits import MAX_TOKENS
from dedup.page.urls import join, url_token, usable_base

__all__ = ["Page", "charset", "decode", "extract", "is_url", "parse"]

#: Elements whose content is not visible text.
DROPPED = frozenset({"script", "style", "noscript", "template"})
#: The attribute that holds a URL worth keeping, per element.
URL_ATTRIBUTES = {"a": "href", "area": "href", "img": "src"}
#: Unicode's stream-safe limit (UAX #15): longer runs of combining marks are cut, since normalising
#: them takes quadratic time.
MAX_MARKS = 30
#: Han (with its iteration marks), kana, Thai, Lao, Burmese, Khmer, of the basic plane: the regular
#: expressions below are compiled to bitmaps as long as no class reaches beyond it (10 times faster).
SPACELESS = (
    "\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46\u0e81-\u0eb0\u0eb2\u0eb3\u0ebd-\u0ec6"
    "\u1000-\u102a\u103f\u1050-\u1055\u1780-\u17b3"
    "\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
)
#: Codecs of Python that no page is encoded in; punycode takes quadratic time.
NOT_CHARSETS = {"punycode", "idna", "undefined", "unicode_escape", "raw_unicode_escape", "utf_7"}
#: Encodings that a page can't have if its declaration of them can be read as ASCII.
NOT_DECLARED = ["utf-16", "utf-16le", "utf-16be", "utf-32", "utf-32le", "utf-32be"]
#: libxml2's XML_ERR_RESOURCE_LIMIT, for which older versions of lxml have no name.
RESOURCE_LIMIT = 114
#: Bytes that are searched for a declaration of the encoding, and from which an unknown one is guessed.
HEAD = 65_536
#: Characters that html.parser is given at most, since it takes quadratic time on broken tags.
SECOND_OPINION = 4_096

# Text is normalised in batches: one character may become 18, and a page of those would not fit into memory.
_BATCH = re.compile(r".{1,65535}(?:\s|$)|.{65536}", re.DOTALL)
_ASCII_TOKENS = re.compile(r"/\S*|\w+", re.ASCII)
# Invisible characters, which vanish, and those that NFKC would turn into slashes.
_INVISIBLE = re.compile(
    "[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\uff0f\u2100\u2101\u2105\u2106]"
)


class Page(NamedTuple):
    """The tokens of a page, and why it can't be judged by them, if it can't.

    The reason is "truncated" where a part of the page is missing, because it is nested deeper than the parser
    goes or lies beyond `MAX_TOKENS`; "empty" where the page has no tokens; or one of those that
    `dedup.page.limits.unreadable` gives, and then nothing of the page was read.
    """

    tokens: list[str]  #: words and URL tokens in document order
    links: int  #: how many different URLs its HREFs name
    reason: str | None = None  #: None for a page that was read as a whole


def is_url(token: str) -> bool:
    """Whether a token is a URL token.

    >>> is_url("/docs/"), is_url("docs")
    (True, False)
    """
    return token.startswith("/")


@cache
def _unicode_patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Patterns of the runs of combining marks over the limit, in the basic plane and beyond, and of tokens."""
    marks = "".join(chr(c) for c in range(0x300, 0x10000) if unicodedata.category(chr(c))[0] == "M")
    letter = rf"[^\W{SPACELESS}]"
    tokens = rf"/\S*|[{SPACELESS}][{marks}]*|{letter}+(?:[{marks}]+{letter}*)*"
    over = f"{{{MAX_MARKS + 1},}}"
    # Halfwidth voicing marks are letters that become marks.
    return (
        re.compile(f"[{marks}\uff9e\uff9f]{over}"),
        re.compile(f"[\U00010a01-\U0001e94a]{over}"),
        re.compile(tokens),
    )


def _normalise(text: str) -> str:
    """The NFKC of a text whose runs of combining marks are cut to the limit."""
    long_marks, beyond, _ = _unicode_patterns()
    text = long_marks.sub(_cut, text)
    if len(text.encode("utf-16-le", "replace")) > 2 * len(text):  # characters beyond the basic plane
        text = beyond.sub(_cut, text)
    return unicodedata.normalize("NFKC", text)


def _cut(run: re.Match[str]) -> str:
    return run[0][:MAX_MARKS]


def split_tokens(text: str) -> list[str]:
    """Folds text and splits it into tokens; a slash begins a URL token, which ends at the next white space.

    >>> split_tokens("Ｆｕｌｌ STRASSE Straße x\u0301")
    ['full', 'strasse', 'strasse', 'x́']
    >>> split_tokens("ไทย 漢字かな हिन्दी")
    ['ไ', 'ท', 'ย', '漢', '字', 'か', 'な', 'हिन्दी']
    """
    if text.isascii():
        return _ASCII_TOKENS.findall(text.lower())
    text = _INVISIBLE.sub(lambda found: " " if found[0] in "\uff0f\u2100\u2101\u2105\u2106" else "", text)
    return _unicode_patterns()[2].findall(_normalise(_normalise(text).casefold()))


def decode(html: bytes | str, encoding: str | None = None) -> str:
    """The text of a page.  A BOM wins, then ``encoding``, then UTF-8 if the page is valid UTF-8, then what the
    page declares, then detection.

    It never raises: an encoding that is no character set is ignored, and undecodable bytes become U+FFFD.

    >>> decode("Käse".encode("latin-1"), "latin-1"), decode(b"\\xef\\xbb\\xbfx", "latin-1")
    ('Käse', 'x')
    >>> decode('<meta charset="cp1251">Привет'.encode("cp1251"))[-6:]
    'Привет'
    """
    if isinstance(html, str):
        return html.encode("utf-8", "replace").decode("utf-8")  # lone surrogates can't be hashed
    for bom, codec in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ):
        if html.startswith(bom):
            return html[len(bom) :].decode(codec, "replace")
    if encoding is not None and (named := charset(encoding)):
        return html.decode(named, "replace")
    with suppress(UnicodeDecodeError):
        return html.decode("utf-8")
    head = html if len(html) <= HEAD else html[:HEAD].rpartition(b"<")[0]
    excluded = [*NOT_DECLARED, *NOT_CHARSETS, *(name.replace("_", "-") for name in NOT_CHARSETS)]
    guess = UnicodeDammit(head, is_html=True, exclude_encodings=excluded).original_encoding
    return decode(html.decode(charset(guess or "") or "windows-1252", "replace"))


def charset(label: str) -> str | None:
    """The Python codec of a character set's label; None if the label names no character set of pages.

    >>> charset("UTF-8"), charset("zlib")
    ('utf_8', None)
    """
    try:
        name = codecs.lookup(label.strip()).name.replace("-", "_")
        b"<x/>".decode(name, "replace")  # zlib, hex and the like don't encode text
    except (LookupError, ValueError):
        return None
    return None if name in NOT_CHARSETS else name


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


def extract(root: etree._Element, url: str = "", keep_urls: bool = True) -> Page:
    """The tokens of a parsed page, whose tree is left as it is.  O(size of the tree).

    ``url`` is the page's own address, against which its links are resolved.
    """
    pieces: list[str] = []
    links: set[str] = set()
    url = base = usable_base(url)
    open_elements: list[etree._Element] = []
    dropping = 0  # how many elements were open when a dropped one opened, itself included; 0 = none

    def close() -> None:
        nonlocal dropping
        tail = open_elements.pop().tail
        if dropping > len(open_elements):
            dropping = 0
        if tail and not dropping and not tail.isspace():
            pieces.append(tail.replace("/", " "))

    # iter() and our own stack: iterwalk and itertext take quadratic time on runs of comments.
    for node in root.iter():
        parent = node.getparent()
        while open_elements and open_elements[-1] is not parent:
            close()
        open_elements.append(node)
        tag = node.tag
        if dropping or not isinstance(tag, str):  # a comment: only what follows it counts
            continue
        if tag in DROPPED:
            dropping = len(open_elements)
            continue
        if (attribute := URL_ATTRIBUTES.get(tag)) and (value := node.get(attribute)):
            if token := url_token(value, base):
                if keep_urls:
                    pieces.append(token)
                if attribute == "href":
                    links.add(token)
        elif tag == "base" and base == url and (value := node.get("href")):
            base = usable_base(join(url, value)) or url
        text = node.text
        if text and not text.isspace():
            pieces.append(text.replace("/", " "))
    while open_elements:
        close()
    text = " ".join(pieces)
    tokens: list[str] = []
    for batch in [text] if text.isascii() else _BATCH.findall(text):
        tokens += split_tokens(batch)
        if len(tokens) > MAX_TOKENS:
            break
    if len(tokens) > MAX_TOKENS or _is_truncated(root):
        return Page(tokens, len(links), "truncated")
    return Page(tokens, len(links), None if tokens else "empty")


def _is_truncated(root: etree._Element) -> bool:
    parser = root.getroottree().parser
    if parser is None:
        return False
    return any(error.type == RESOURCE_LIMIT for error in parser.error_log)
