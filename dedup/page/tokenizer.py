"""Octets of a page -> tags, texts and comments, as the HTML standard's tokenizer tells them apart (WHATWG, 13.2.5).

What it can't know without a tree is read from tags alone: a start tag of ``title``, ``script`` and the like begins the text
of such an element, and SVG and MathML, in which nothing does so, last until their end tag or a tag that ends them.

>>> for event in tokenize(b"<p id=a>7 &lt; 8<br/><!-- x --><script>if (a <b) c</script>"):
...     print(event.kind.name, repr(event.text), *event.attributes.items())
START 'p' ('id', 'a')
TEXT '7 < 8'
START 'br'
COMMENT ' x '
START 'script'
TEXT 'if (a <b) c'
END 'script'
"""

import re
import sys
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

from dedup.compiled import fast
from dedup.page.references import resolve


class Kind(IntEnum):
    """What an event is."""

    TEXT = 0
    START = 1
    END = 2
    COMMENT = 3
    DOCTYPE = 4


class Content(IntEnum):
    """What a text may hold beside characters."""

    DATA = 0  #: tags and references
    RCDATA = 1  #: references, until the end tag of its element
    RAWTEXT = 2  #: nothing, until then
    SCRIPT = 3  #: the same, and comments in which that end tag may be quoted
    PLAINTEXT = 4  #: nothing, until the page ends
    CDATA = 5  #: nothing, until "]]>"


class Event(NamedTuple):
    """A part of a page's markup."""

    kind: Kind
    start: int  #: the octets that it takes, from here
    end: int  #: to before here
    text: str  #: its characters, or its name in lower case
    attributes: dict[str, str]  #: of a start tag; of a doctype, its "public" and its "system" identifier
    flag: bool  #: of a start tag, whether it closes itself; of a doctype, whether it asks for quirks


#: What begins in the text of elements, by their names.
CONTENTS = {
    **dict.fromkeys(("title", "textarea"), Content.RCDATA),
    **dict.fromkeys(("style", "xmp", "iframe", "noembed", "noframes"), Content.RAWTEXT),
    "script": Content.SCRIPT,
    "plaintext": Content.PLAINTEXT,
}
#: Elements of SVG and MathML in which HTML stands.
_ISLANDS = {
    "svg": frozenset(["foreignobject", "desc", "title"]),
    "math": frozenset(["mi", "mo", "mn", "ms", "mtext"]),
}
#: Elements of HTML whose tags end SVG and MathML.
_ENDING = re.compile(
    "b|big|blockquote|body|br|center|code|dd|div|dl|dt|em|embed|h[1-6]|head|hr|i|img|li|listing|menu|meta|nobr|ol|p|"
    "pre|ruby|s|small|span|strong|strike|sub|sup|table|tt|u|ul|var"
)
#: Elements of SVG and MathML within each other that are told; those that are nested more deeply are not.
MAX_DEPTH = 64

_SPACE = b"\t\n\f\r "
#: What is between the name of a tag and its end.  No group is within what gives nothing back: re has its faults there.
_INSIDE = (
    rb"""(?:[_/]++|(?:=[^_/>=]*+|[^_/>=]++)"""
    rb"""(?:[_]*+=[_]*+(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z)|(?:[^_>"'][^_>]*+)?+))?+)*+"""
).replace(b"_", _SPACE)
_TAG = re.compile(rb"<(/?)([A-Za-z][^%b/>]*+)(%b)>" % (_SPACE, _INSIDE))
#: Texts of HTML, and tags after which there is HTML again.
_PLAIN = re.compile(
    rb"(?:[^<]++|</?(?!(?:%b)[%b/>])[a-z][^%b/>]*+%b>)*+"
    % ("|".join([*CONTENTS, *_ISLANDS]).encode(), _SPACE, _SPACE, _INSIDE),
    re.IGNORECASE,
)
_ATTRIBUTES = re.compile(
    rb"""(=[^_/>=]*|[^_/>=]+)(?:[_]*=[_]*(?:"([^"]*)"|'([^']*)'|([^_>]*)))?""".replace(b"_", _SPACE)
)
_MARK = re.compile(rb"<(?:[A-Za-z!?]|/.)", re.DOTALL)
_EMPTY_COMMENT, _COMMENT_END = re.compile(rb"-?>"), re.compile(rb"--!?>")
_CUT_COMMENT = re.compile(rb"(?:--!|--?)\Z")
#: What may end a script, or begin or end a comment in it.
_IN_SCRIPT = re.compile(rb"<!(?=--)|-->|</?script(?=[%b/>])" % _SPACE, re.IGNORECASE)


def tokenize(
    markup: bytes | str, content: Content = Content.DATA, name: str = "", *, sections: bool = False
) -> Iterator[Event]:
    """Gives the events of a page, in order.  O(octets).

    Octets are UTF-8.  ``markup`` begins in ``content``, in an element called ``name`` if it is the text of one.
    With ``sections``, a CDATA section of HTML, which is a comment, is as long as it is in XHTML, where it is text.
    """
    octets = markup if isinstance(markup, bytes) else markup.encode("utf-8", "surrogatepass")
    if fast:
        return map(
            Event._make, fast.tokenize(octets, content, name.encode(), sections, sys.modules[__name__])
        )
    return _Reader(octets, sections).read(content, name.encode())


def without_comments(markup: bytes) -> bytes:
    """Returns markup without comments, but for those that are none in XHTML.  O(octets).

    >>> without_comments(b"<p>7<!-- made in 3 ms --><script><!-- draw() --></script>")
    b'<p>7<script><!-- draw() --></script>'
    """
    if b"<!--" not in markup:
        return markup
    if fast:
        whole: bytes = fast.without_comments(markup)
        return whole
    left, parts = 0, list[bytes]()
    for event in _Reader(markup, sections=True).read(Content.DATA, b"", skips=True):
        if event.kind is Kind.COMMENT and markup.startswith(b"<!--", event.start):
            parts.append(markup[left : event.start])
            left = event.end
    return b"".join([*parts, markup[left:]])


class _Reader:
    def __init__(self, octets: bytes, sections: bool) -> None:
        self._octets, self._sections = octets, sections
        self._foreign = list[str]()  # open elements of SVG and MathML, and the islands of HTML in them

    def read(self, content: Content, name: bytes, *, skips: bool = False) -> Iterator[Event]:
        """Gives events; it ``skips`` most texts and tags, as fast as can be."""
        octets, at = self._octets, 0
        while at < len(octets):
            if (
                skips
                and content is Content.DATA
                and not self._foreign
                and (plain := _PLAIN.match(octets, at))
            ):
                at = plain.end()
            end = self._end_of_text(at, content, name)
            if at < end:
                yield Event(Kind.TEXT, at, end, _text(octets[at:end], content), {}, False)
            at, was, content = end, content, Content.DATA
            if was is not Content.CDATA and (found := _TAG.match(octets, at)):
                at, event = found.end(), _tag(found)
                yield event
                if self._turn(event):
                    continue
                if event.text in CONTENTS and event.kind is Kind.START:
                    content, name = CONTENTS[event.text], event.text.encode()
            elif was is Content.CDATA or octets.startswith(b"</>", at):
                at += 3
            elif octets.startswith(b"<![CDATA[", at) and self._is_foreign():
                at, content = at + 9, Content.CDATA
            elif octets[at + 1 : at + 3].lstrip(b"/")[:1].isalpha():
                return  # a tag that never ends
            elif at < len(octets):
                event = self._comment(at)
                yield event
                at = event.end

    def _end_of_text(self, at: int, content: Content, name: bytes) -> int:
        """Returns where a text ends that begins here."""
        octets = self._octets
        if content is Content.DATA:
            found = _MARK.search(octets, at)
        elif content is Content.CDATA:
            return _find(octets, b"]]>", at)
        elif content is Content.PLAINTEXT or not name:
            return len(octets)
        elif content is Content.SCRIPT:
            return self._end_of_script(at)
        else:
            found = re.compile(rb"</%b(?=[%b/>])" % (re.escape(name), _SPACE), re.IGNORECASE).search(
                octets, at
            )
        return found.start() if found else len(octets)

    def _end_of_script(self, at: int) -> int:
        in_comment = is_quoted = False
        for found in _IN_SCRIPT.finditer(self._octets, at):
            mark = found[0][:2]
            if mark == b"--":
                in_comment = is_quoted = False
            elif mark == b"<!":
                in_comment = True
            elif mark != b"</":
                is_quoted = in_comment
            elif is_quoted:
                is_quoted = False
            else:
                return found.start()
        return len(self._octets)

    def _comment(self, at: int) -> Event:
        """Returns the comment or doctype that begins here."""
        octets = self._octets
        if octets.startswith(b"<!--", at):
            return self._true_comment(at)
        after = octets[at + 1 : at + 2]
        start = at + (1 if after == b"?" else 2)
        closing = b"]]>" if self._sections and octets.startswith(b"<![CDATA[", at) else b">"
        end = _find(octets, closing, start)
        past = min(end + len(closing), len(octets))
        if after == b"!" and octets[start : start + 7].lower() == b"doctype":
            return Event(Kind.DOCTYPE, at, past, *read_doctype(octets[start + 7 : end], end < past))
        return Event(Kind.COMMENT, at, past, _text(octets[start:end]), {}, False)

    def _true_comment(self, at: int) -> Event:
        octets, start = self._octets, at + 4
        if found := _EMPTY_COMMENT.match(octets, start):
            text = b""
        elif found := _COMMENT_END.search(octets, start):
            text = octets[start : found.start()]
        else:
            text = _CUT_COMMENT.sub(b"", octets[start:])
        return Event(Kind.COMMENT, at, found.end() if found else len(octets), _text(text), {}, False)

    def _is_foreign(self) -> bool:
        return bool(self._foreign) and self._foreign[-1] in _ISLANDS

    def _turn(self, tag: Event) -> bool:
        """Goes into SVG or MathML, or out of it; returns whether it was there before."""
        opened, name, was_foreign = self._foreign, tag.text, self._is_foreign()
        if was_foreign and _ENDING.fullmatch(name):
            while self._is_foreign():
                opened.pop()
        elif tag.kind is Kind.END:
            if name in opened:
                while opened.pop() != name:
                    pass
        elif tag.flag or len(opened) == MAX_DEPTH:
            pass
        elif name in _ISLANDS or (was_foreign and name in _ISLANDS[opened[-1]]):
            opened.append(name)
        return was_foreign


def _find(octets: bytes, what: bytes, at: int) -> int:
    """Returns where something is first; the end, if it is nowhere."""
    found = octets.find(what, at)
    return found if found >= 0 else len(octets)


def _tag(found: re.Match[bytes]) -> Event:
    closing, name, said = found.groups()
    start, end = found.span()
    if closing:
        return Event(Kind.END, start, end, _name(name), {}, False)
    attributes = dict[str, str]()
    for its, *values in _ATTRIBUTES.findall(said) if said else ():
        attributes.setdefault(_name(its), _value(values[0] or values[1] or values[2]))
    return Event(
        Kind.START, start, end, _name(name), attributes, said.endswith(b"/") and _ends_in_slash(said)
    )


def _ends_in_slash(attributes: bytes) -> bool:
    """Whether a slash stands behind the last attribute."""
    ends = [each.end() for each in _ATTRIBUTES.finditer(attributes)]
    return attributes.endswith(b"/", *ends[-1:])


def read_doctype(said: bytes, is_whole: bool) -> tuple[str, dict[str, str], bool]:
    """Returns a doctype's name and identifiers, and whether it asks for quirks."""
    octets, *more = re.split(rb"[%b]+" % _SPACE, said.lstrip(_SPACE), maxsplit=1)
    name, rest, identifiers = _name(octets), b"".join(more), dict[str, str]()
    keyword, rest = rest[:6].lower(), rest[6:].lstrip(_SPACE)
    if keyword not in {b"public", b"system"}:
        return name, {}, not is_whole or not name or bool(keyword)
    for each in ("public", "system") if keyword == b"public" else ("system",):
        quote = rest[:1]
        if quote not in {b"'", b'"'}:
            return name, identifiers, not is_whole or not identifiers or bool(rest)
        identifier, closing, rest = rest[1:].partition(quote)
        identifiers[each], rest = _text(identifier), rest.lstrip(_SPACE)
        if not closing:
            return name, identifiers, True
    return name, identifiers, not is_whole and not rest


def _text(octets: bytes, content: Content = Content.RAWTEXT) -> str:
    try:
        text = octets.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        text = octets.decode("utf-8", "replace")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\0" in text and content not in {Content.DATA, Content.CDATA}:
        text = text.replace("\0", "\ufffd")
    return resolve(text) if content in {Content.DATA, Content.RCDATA} else text


def _name(octets: bytes) -> str:
    return _text(octets.lower())


def _value(octets: bytes) -> str:
    return resolve(_text(octets), in_value=True) if octets else ""
