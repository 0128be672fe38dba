"""The main text of a page as XPaths of its site find it, by no code of the package."""

import re

from lxml import etree, html

INVISIBLE = "self::script or self::style or self::noscript or self::template"


def main_text(data: bytes, where: list[str]) -> list[str]:
    """The words of what the first XPath finds that finds something, or else of the body."""
    try:
        root = html.fromstring(data, parser=html.HTMLParser(encoding="utf-8", huge_tree=True))
    except (etree.ParserError, etree.XMLSyntaxError):
        return []
    for xpath in [*where, "//body"]:
        if found := root.xpath(xpath):
            texts = found[0].xpath(
                f".//text()[not(ancestor::*[{INVISIBLE}]) and not(parent::*[self::comment()])]"
            )
            return re.findall(r"\w+", " ".join(map(str, texts)).lower())
    return []


def shingles(words: list[str]) -> frozenset[int]:
    """Hashes of all runs of three words; of a shorter text, of the whole."""
    return frozenset(hash(tuple(words[at : at + 3])) for at in range(max(1, len(words) - 2)))
