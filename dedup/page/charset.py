"""Bytes -> text: in which character set a page is written."""

import codecs
import re
from contextlib import suppress

from w3lib.encoding import resolve_encoding

#: Codecs of Python that no page is encoded in; punycode takes quadratic time.
NOT_CHARSETS = {"punycode", "idna", "undefined", "unicode_escape", "raw_unicode_escape", "utf_7"}
#: Encodings that a page can't have if its declaration of them can be read as ASCII.
NOT_DECLARED = ["utf-16", "utf-16le", "utf-16be", "utf-32", "utf-32le", "utf-32be"]
#: Bytes that are searched for a declaration of the encoding, and from which an unknown one is guessed.
HEAD = 65_536
#: What the standard's labels have around names that are known: x-gbk, x-cp1252, iso-8859-8-i.
_VARIANT = re.compile(r"^x-|-[ei]$")


def decode(html: bytes | str, encoding: str | None = None) -> str:
    """Returns the text of a page.  A BOM wins, then ``encoding``, then UTF-8 if the page is valid UTF-8, then what the
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
    from bs4 import UnicodeDammit  # not above: it takes longer to load than most crawls ever need it

    head = html if len(html) <= HEAD else html[:HEAD].rpartition(b"<")[0]
    excluded = [*NOT_DECLARED, *NOT_CHARSETS, *(name.replace("_", "-") for name in NOT_CHARSETS)]
    guess = UnicodeDammit(head, is_html=True, exclude_encodings=excluded).original_encoding
    return decode(html.decode(charset(guess or "") or "windows-1252", "replace"))


def charset(label: str) -> str | None:
    """Returns the Python codec of what browsers take a label for, as a crawl does; None if it names no character set of pages.

    >>> charset("UTF-8"), charset("gb2312"), charset("iso-8859-1"), charset("zlib")
    ('utf_8', 'gb18030', 'cp1252', None)
    """
    label = label.strip().lower()
    try:
        name = resolve_encoding(label) or resolve_encoding(_VARIANT.sub("", label)) or ""
        b"<x/>".decode(name, "replace")  # zlib, hex and the like don't encode text
    except (LookupError, ValueError):
        return None
    name = name.replace("-", "_")
    return None if name in NOT_CHARSETS else name
