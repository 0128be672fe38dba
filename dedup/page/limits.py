"""Limits: which texts are parsed at all, so that every page is judged in bounded time and memory.

A crawler has one event loop: a page that takes a minute to parse stops the crawl, and a parser can't be
interrupted.  So its work is bounded before it begins.  That work is linear in the characters and the tags of a
page, except for the attributes of one tag: libxml2 goes through all the earlier ones to add another.
"""

from typing import Any, cast

from lxml import etree

from dedup.compiled import fast

# On a core that judges 12 MB of ordinary pages a second, the worst page within all these limits takes 2 s and 200 MB.
#: Characters of a page, markup included.  War and Peace has three million.
MAX_CHARACTERS = 4_000_000
#: Less-than signs of a page.  A link takes up to 22 us, an end tag within 2,048 open elements up to 5 us.
MAX_TAGS = 80_000
#: Attributes of one tag, times the characters of its page: 500 in the longest page, 30,000 in one of 64 kB.
MAX_ATTRIBUTES = 2_000_000_000
#: Tokens of a page.  One takes up to 1 us and 150 bytes, and U+FDFA, one character, is four of them.
MAX_TOKENS = 1_000_000

#: Places where a tag ends unless they are in a quoted value, among which one is sought that is not.
TRIES = 16
#: Characters among which control characters are counted.
HEAD = 8_192

#: The reasons that `unreadable` gives.
UNREADABLE = frozenset({"large", "hostile", "binary", "undecodable"})
#: Those of them for which nothing else should parse a page either.
UNPARSABLE = frozenset({"large", "hostile"})

_BETWEEN_ATTRIBUTES = " \t\n\f\r/\"'"
_CONTROL = [chr(code) for code in range(32) if chr(code) not in "\t\n\v\f\r\x1b"]


def unreadable(text: str) -> str | None:
    """Returns why decoded text is not judged, or None.  O(characters).

    * "large": more characters or tags than `MAX_CHARACTERS`, `MAX_TAGS`;
    * "hostile": a tag of more attributes than `MAX_ATTRIBUTES` allows;
    * "binary": more than one control character in a hundred;
    * "undecodable": more than one U+FFFD in twenty characters.

    >>> unreadable("<br>" * 200_000), unreadable("<p" + "".join(f" a{n}" for n in range(40_000)) + ">")
    ('large', 'hostile')
    >>> unreadable("\\x89PNG\\r\\n\\x1a\\n\\x00\\x00\\x00"), unreadable("\\ufffd" * 9 + "a" * 90)
    ('binary', 'undecodable')
    >>> unreadable("<p>Some \\ufffd text with a NUL\\x00 in it" + " and so on" * 20)
    """
    if len(text) > MAX_CHARACTERS:
        return "large"
    tags, nuls, controls, replaced = _survey(text, HEAD)
    if tags > MAX_TAGS:
        return "large"
    if _is_hostile(text.replace("\x00", "") if nuls else text):  # as it is parsed
        return "hostile"
    return _no_text(text, controls, replaced)


def no_text(text: str) -> str | None:
    """Returns the same of a text without markup: "large", "binary", "undecodable", or None.  O(characters)."""
    if len(text) > MAX_CHARACTERS:
        return "large"
    _, _, controls, replaced = _survey(text, HEAD)
    return _no_text(text, controls, replaced)


def _no_text(text: str, controls: int, replaced: int) -> str | None:
    if controls * 100 > min(len(text), HEAD):
        return "binary"
    return "undecodable" if replaced * 20 > len(text) else None


def survey_in_python(text: str, head: int) -> tuple[int, int, int, int]:
    """Counts the less-than signs and the NULs of a text, the control characters in its head, and its U+FFFD."""
    # To seek a character is much faster than to count it.
    start = text[:head]
    controls = sum(start.count(control) for control in _CONTROL if control in start)
    replaced = text.count("\ufffd") if "\ufffd" in text else 0
    nuls = text.count("\x00") if "\x00" in text else 0
    return text.count("<"), nuls, controls, replaced


_survey = fast.survey if fast else survey_in_python


def _is_hostile(text: str) -> bool:
    most = MAX_ATTRIBUTES // max(1, len(text))
    if not _has_long_tag(text, most):
        return False
    if etree.LIBXML_VERSION < (2, 14):  # where counting takes as long as parsing
        return True
    counter = _Counter()
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True, no_network=True, target=cast(Any, counter))
    # A tag that never ends is closed here, as by the mark that `dedup.page.html` puts behind a text.
    etree.fromstring(text.strip().encode("utf-8", "replace") + b">", parser)
    return counter.most > most


def _has_long_tag(text: str, most: int) -> bool:
    """Returns whether a tag may have more attributes than this.  O(characters).

    Where a tag begins depends on everything before it.  But wherever it begins, it ends at the first ">" that
    is not in a quoted value.  So such a ">" is looked for from place to place, so far apart that as many attributes
    have no room in between, which take two characters each.  Where there is none for longer, as in a script, what
    separates attributes is counted.
    """
    end = 0
    quotes = {'"': -1, "'": -1}  # the last of each before that ">"
    for start in range(most, len(text), most):
        if start < end:
            continue
        begin, end = end, start - 1
        for _ in range(TRIES):
            before, end = end, text.find(">", end + 1, start + most)
            if end < 0:
                end = text.find(">", max(before + 1, start + most))
                stretch = begin, end if end >= 0 else len(text)
                if sum(text.count(each, *stretch) for each in _BETWEEN_ATTRIBUTES) >= most:
                    return True
                if end < 0:
                    return False
            quotes = {quote: max(at, text.rfind(quote, begin, end)) for quote, at in quotes.items()}
            if not any(_may_open_value(text, at) for at in quotes.values()):
                break
        else:
            return True
    return False


def _may_open_value(text: str, quote: int) -> bool:
    if quote < 0:
        return False
    before = text[max(0, quote - 64) : quote].rstrip()
    return not before or before[-1] == "="


class _Counter:
    """Counts the attributes of each tag by the parser's events, which builds no tree."""

    def __init__(self) -> None:
        self.most = 0  # attributes of one tag

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self.most = max(self.most, len(attributes))

    def close(self) -> None:
        pass
