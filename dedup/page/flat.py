"""Tree -> one text of a page, with marks in it: for the links worth keeping, for parts of the page, and for scripts.

libxslt makes it, which takes a fraction of the time that an object of Python for each node would take, lets other
threads go on meanwhile, and is linear in the size of any tree.
"""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from secrets import token_hex
from typing import cast

from lxml import etree

from dedup.page.shell import DROPPED

__all__ = [
    "CHROME",
    "CHROME_ROLES",
    "CONTENT",
    "HEADING",
    "MARGINS",
    "TITLE",
    "is_chrome_role",
    "read_flat",
]

#: Elements, and ARIA roles, that mark the chrome of a site: what is around a page, and on many pages alike.
CHROME = frozenset({"nav", "aside", "form", "menu"})
CHROME_ROLES = frozenset({"navigation", "banner", "contentinfo", "search", "complementary", "form", "menu"})
#: Elements that are chrome unless they are the header or footer of what a page is about.
MARGINS = frozenset({"header", "footer"})
CONTENT = frozenset({"main", "article", "section"})
#: Elements that say what a page is called; of the second, the first in the page.
TITLE, HEADING = "title", "h1"

#: What stands on both sides of a mark.  No page can have it, since nobody can guess it.
_CUT = token_hex(8)
_PARTS = CHROME | MARGINS | CONTENT | {TITLE, HEADING}
_HIDDEN = " | ".join(sorted(DROPPED - {"script"}))
_STYLESHEET = f"""
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
  <xsl:output method="text" encoding="utf-8"/>
  <xsl:template match="/"><xsl:apply-templates select="*[1]"/></xsl:template>
  <xsl:template match="text()"><xsl:text>&#10;</xsl:text><xsl:copy/></xsl:template>
  <xsl:template match="comment() | processing-instruction()"/>
  <xsl:template match="a | area"><xsl:call-template name="link"/><xsl:apply-templates/></xsl:template>
  <xsl:template name="link">
    <xsl:text>{_CUT}h</xsl:text><xsl:value-of select="@href"/><xsl:text>{_CUT}</xsl:text>
  </xsl:template>
  <xsl:template match="img"><xsl:call-template name="image"/><xsl:apply-templates/></xsl:template>
  <xsl:template name="image">
    <xsl:text>{_CUT}i</xsl:text><xsl:value-of select="@src"/><xsl:text>{_CUT}</xsl:text>
  </xsl:template>
  <xsl:template match="{" | ".join(sorted(_PARTS))} /* roles */" priority="2">
    <xsl:text>{_CUT}p</xsl:text><xsl:value-of select="name()"/>
    <xsl:text> </xsl:text><xsl:value-of select="@role"/><xsl:text>{_CUT}</xsl:text>
    <xsl:if test="self::a or self::area"><xsl:call-template name="link"/></xsl:if>
    <xsl:if test="self::img"><xsl:call-template name="image"/></xsl:if>
    <xsl:apply-templates/>
    <xsl:text>{_CUT}/{_CUT}</xsl:text>
  </xsl:template>
  <xsl:template match="base" priority="3">
    <xsl:text>{_CUT}b</xsl:text><xsl:value-of select="@href"/><xsl:text>{_CUT}</xsl:text>
  </xsl:template>
  <xsl:template match="script" priority="3"><xsl:text>{_CUT}s{_CUT}</xsl:text></xsl:template>
  <xsl:template match="{_HIDDEN}" priority="3">
    <xsl:for-each select="descendant::script"><xsl:text>{_CUT}-{_CUT}</xsl:text></xsl:for-each>
  </xsl:template>
</xsl:stylesheet>
"""
_FIND_ROLES = cast(
    Callable[[etree._Element], list[etree._Element]], etree.XPath("descendant-or-self::*[@role]")
)
#: Of how many kinds such elements are, at most; of more, or of one with a strange name, each element is asked for its role,
#: which takes twice the time.
MAX_KINDS = 6
_PLAIN_NAME = re.compile(r"[a-z][a-z0-9]*").fullmatch


def read_flat(root: etree._Element) -> Iterator[tuple[str, str, str]]:
    """Marks, what each marks, and the texts before the next mark; texts of different nodes are on different lines.

    The first mark is empty.  "p" is for a part, with its tag and its role, and "/" for its end; "h" for an HREF, "i" for
    the SRC of an image, "b" for a base; "s" for a script, and "-" for one that is not run, since what is around it
    is not shown.

    >>> list(read_flat(etree.HTML("<h1>One <b>story</b></h1><a href=/b>next</a><noscript>no</noscript>")))
    [('', '', ''), ('p', 'h1 ', '\\nOne \\nstory'), ('/', '', ''), ('h', '/b', '\\nnext')]
    """
    kinds = {str(node.tag) for node in _FIND_ROLES(root) if is_chrome_role(str(node.get("role")))} - _PARTS
    if len(kinds) > MAX_KINDS or not all(map(_PLAIN_NAME, kinds)):
        kinds = {"*"}
    first, *others = str(_transform(*sorted(kinds))(root)).split(_CUT)
    yield "", "", first
    for mark, text in zip(others[::2], others[1::2], strict=True):
        yield mark[0], mark[1:], text


@lru_cache(maxsize=256)
def _transform(*kinds: str) -> etree.XSLT:
    # One more match, and not a template that calls another: libxslt goes 3,000 templates deep, and libxml2 2,048 elements.
    roles = "".join(f"| {kind}[@role] " for kind in kinds)
    return etree.XSLT(etree.fromstring(_STYLESHEET.replace("/* roles */", roles)))


def is_chrome_role(role: str) -> bool:
    """Whether an element of this role is chrome."""
    return role.strip().lower() in CHROME_ROLES
