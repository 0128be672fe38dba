"""Tree -> one text of a page, with marks in it: for links, what is shown, data, and parts of the page.

The sets of names in here are all that is known of what HTML shows, for this walk and for the compiled one: what is read of a
page is the text of all elements but those of `CODE` and `IGNORED`, and the attributes in `ATTRIBUTES`.

libxslt makes the text, which takes a fraction of the time that an object of Python for each node would take, lets other
threads go on meanwhile, and is linear in the size of any tree.
"""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from secrets import token_hex
from typing import cast

from lxml import etree

#: Elements, and ARIA roles, that mark the chrome of a site: what is around a page, and on many pages alike.
CHROME = frozenset({"nav", "aside", "form", "menu"})
CHROME_ROLES = frozenset({"navigation", "banner", "contentinfo", "search", "complementary", "form", "menu"})
#: Elements that are chrome unless they are the header or footer of what a page is about.
MARGINS = frozenset({"header", "footer"})
CONTENT = frozenset({"main", "article", "section"})
#: Elements that say what a page is called; of the second, the first in the page.
TITLE, HEADING = "title", "h1"

#: Elements whose text is data, not words.
CODE = frozenset({"script", "style"})
#: An element that is not read.  No page has it: the names that a parser finds are in lower case.
IGNORED = "IGNORED"
#: Attributes that count, each with its mark: "w" for words that are shown or read out; "i" for the URL of what is shown, and
#: "t" for several URLs, the first of which counts; "h" for that of a link; "v" for a value, "c" for a content (of a meta
#: element that has a name, that of a description), "o" for the data of an object, "y" for a style, of which an image is
#: read; "l" for a title (titles of links are data, since they mostly repeat the links); "d" for other data, such as every
#: ``data-*``; "u" for what is no words, such as the line of a chart; "e" for what is not read, and only makes pages unequal,
#: as values other than those of inputs do.
ATTRIBUTES = {
    **dict.fromkeys(["alt", "alttext", "aria-label", "label", "placeholder", "srcdoc", "summary"], "w"),
    **dict.fromkeys(["src", "poster", "data-src", "data-original", "data-lazy", "data-lazy-src"], "i"),
    **dict.fromkeys(["srcset", "data-srcset", "data-lazy-srcset"], "t"),
    "href": "h",
    "value": "v",
    "content": "c",
    "data": "o",
    "style": "y",
    "title": "l",
    **dict.fromkeys(["onclick", "datetime"], "d"),
    **dict.fromkeys(["points", "d"], "u"),
    **dict.fromkeys(["aria-valuenow", "checked", "selected", "coords", "height", "width", "transform"], "e"),
    **dict.fromkeys(["bgcolor", "color", "fill"], "e"),
}

#: Inputs whose values nobody sees.
UNSEEN = frozenset({"hidden", "checkbox", "radio", "password", "image"})

#: Elements that are parts of a line, and no blocks.
INLINE = frozenset(
    [
        *("a", "abbr", "acronym", "area", "audio", "b", "bdi", "bdo", "big", "button", "canvas", "cite"),
        *("code", "data", "del", "dfn", "em", "font", "i", "iframe", "img", "input", "ins", "kbd"),
        *("label", "map", "mark", "math", "meter", "noscript", "object", "option", "output", "picture"),
        *("progress", "q", "rp", "rt", "ruby", "s", "samp", "select", "small", "source", "span"),
        *("strike", "strong", "sub", "sup", "svg", "template", "textarea", "time", "track", "tt", "u"),
        *("var", "video", "wbr"),
    ]
)

#: What stands on both sides of a mark.  No page can have it, since nobody can guess it.
_CUT = token_hex(8)
_PARTS = CHROME | MARGINS | CONTENT | {TITLE, HEADING}


def _marked(mark: str, what: str = '<xsl:value-of select="."/>') -> str:
    return f"<xsl:text>{_CUT}{mark}</xsl:text>{what}<xsl:text>{_CUT}</xsl:text>"


def _template(match: str, content: str, priority: int) -> str:
    return f'<xsl:template match="{match}" priority="{priority}">{content}</xsl:template>'


def _line(value: str) -> str:
    """Returns a value as a line of its own."""
    return f"<xsl:value-of select=\"translate({value}, '&#10;', ' ')\"/><xsl:text>&#10;</xsl:text>"


def _plain(mark: str) -> str:
    """Returns the attributes that have a mark wherever they are."""
    names = " | ".join(f"@{name}" for name, its in sorted(ATTRIBUTES.items()) if its == mark)
    return _template(names, _marked(mark), 2)


_LOWER = "translate(../@name, 'DESCRIPTON', 'descripton')"
_DATUM = _marked("d", '<xsl:value-of select="name()"/><xsl:text>&#10;</xsl:text><xsl:value-of select="."/>')
_INSIDE = '<xsl:apply-templates select="@*"/><xsl:apply-templates/>'
_STYLESHEET = f"""
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
  <xsl:output method="text" encoding="utf-8"/>
  <xsl:template match="/"><xsl:apply-templates select="*[1]"/></xsl:template>
  <xsl:template match="text()"><xsl:text>&#10;</xsl:text><xsl:copy/></xsl:template>
  <xsl:template match="comment() | processing-instruction() | @*"/>
  <xsl:template match="*">{_INSIDE}</xsl:template><!-- blocks -->
  {
    _template("@class | @id | @name | @rel | @role | @type", "", 3)
}<!-- so that nobody asks whether they are data-* -->
  {_plain("w")}{_plain("i")}{_plain("t")}{_plain("d").replace(_marked("d"), _DATUM)}
  {_plain("u").replace(_marked("u"), _marked("l"))}{_template("@style", _marked("l"), 0)}
  {_plain("e")}{_template("@value", _marked("e"), 1)}
  {_template("@*[starts-with(name(), 'data-')] | @style[contains(., 'url(')]", _DATUM, 1)}
  {_template("@content[not(parent::meta[@name or @http-equiv])]", _DATUM, 2)}
  {_template("@href", _marked("i"), 2)}{_template("a/@href | area/@href", _marked("h"), 3)}
  {_template("@title", _marked("w"), 2)}{_template("a/@title | area/@title", _marked("l"), 3)}
  {_template("link/@href | link/@title", "", 3)}{_template("object/@data", _marked("i"), 2)}
  {_template(f"meta[{_LOWER.replace('../', '')}='description']/@content", _DATUM, 2)}
  {
    _template(
        "input/@value | button/@value",
        _marked(
            "v",
            _line("name(..)") + _line("../@type") + _line("../@name") + '<xsl:value-of select="."/>',
        ),
        2,
    )
}
  <xsl:template match="{" | ".join(sorted(_PARTS))} /* roles */" priority="2">
    <xsl:text>{_CUT}p</xsl:text><xsl:value-of select="name()"/>
    <xsl:text> </xsl:text><xsl:value-of select="@role"/><xsl:text>{_CUT}</xsl:text>
    {_INSIDE}
    <xsl:text>{_CUT}/{_CUT}</xsl:text>
  </xsl:template>
  {_template("base", _marked("b", '<xsl:value-of select="@href"/>'), 3)}
  {
    _template(
        " | ".join(sorted(CODE)),
        _marked("s", _line("name()") + _line("@type") + '<xsl:value-of select="."/>'),
        3,
    )
}
  {_template(IGNORED, "", 3)}
</xsl:stylesheet>
"""
_BLOCKS = (
    f'<xsl:template match="*" priority="0">{_marked("k", "")}{_INSIDE}{_marked("K", "")}</xsl:template>'
    + _template(" | ".join(sorted(INLINE)), _INSIDE, 1)
)
_FIND_ROLES = cast(
    Callable[[etree._Element], list[etree._Element]], etree.XPath("descendant-or-self::*[@role]")
)
#: Such elements are of this many kinds at most; if there are more, or of one with a strange name, each element is asked for its role,
#: which takes twice the time.
MAX_KINDS = 6
_PLAIN_NAME = re.compile(r"[a-z][a-z0-9]*").fullmatch


def read_flat(root: etree._Element, *, blocks: bool = False) -> Iterator[tuple[str, str, str]]:
    """Marks, what each marks, and the texts before the next mark; texts of different nodes are on different lines.

    The first mark is empty.  "p" is for a part, with its tag and its role, and "/" for its end; "b" for a base; "s" for a
    script or a style, with its tag, its type and its text, each of the first two on a line; and others for attributes, as
    `ATTRIBUTES` has them: "l" only of links, and for what is no words, "d" with its name on a line before its value, "v" with the tag, the type and the name of the input.
    If ``blocks`` are asked for, "k" is for one that is no part either, and "K" for its end.

    >>> list(read_flat(etree.HTML("<h1>One <b>story</b></h1><a href=/b title=more>next</a><p data-x=1>")))
    [('', '', ''), ('p', 'h1 ', '\\nOne \\nstory'), ('/', '', ''), ('h', '/b', ''), ('l', 'more', '\\nnext'), ('d', 'data-x\\n1', '')]
    """
    kinds = {str(node.tag) for node in _FIND_ROLES(root) if is_chrome_role(str(node.get("role")))} - _PARTS
    if len(kinds) > MAX_KINDS or not all(map(_PLAIN_NAME, kinds)):
        kinds = {"*"}
    first, *others = str(_transform(*sorted(kinds), blocks=blocks)(root)).split(_CUT)
    yield "", "", first
    for mark, text in zip(others[::2], others[1::2], strict=True):
        yield mark[0], mark[1:], text


@lru_cache(maxsize=256)
def _transform(*kinds: str, blocks: bool) -> etree.XSLT:
    # One more match, and not a template that calls another: libxslt goes 3,000 templates deep, and libxml2 2,048 elements.
    roles = "".join(f"| {kind}[@role] " for kind in kinds)
    sheet = _STYLESHEET.replace("/* roles */", roles)
    return etree.XSLT(etree.fromstring(sheet.replace("<!-- blocks -->", _BLOCKS) if blocks else sheet))


def is_chrome_role(role: str) -> bool:
    """Returns whether an element of this role is chrome."""
    return role.strip().lower() in CHROME_ROLES


def datum_name(tag: str, kind: str, name: str) -> str | None:
    """Returns the name of a value that nobody sees, of an element, its type and its name; None if it is shown.

    >>> datum_name("input", "Hidden", "id"), datum_name("input", "submit", "go")
    ('@id', None)
    """
    return "@" + name if tag == "input" and kind.strip().lower() in UNSEEN else None
