"""What a page says itself, as plain text: without the menus, sidebars and footers that many pages of its host share.

What is chrome is known from the kept pages of the host (`dedup.fingerprint.chrome`), and from marks such as ``<nav>``.  A block
of a page, such as a paragraph, is its own if at least a fifth of its words are.  Where a site marks its main element, ``<main>``,
nothing in there is chrome unless it is marked.  Until eight pages of a host were kept, marks alone tell.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from lxml import etree

from dedup.fingerprint.chrome import Chrome
from dedup.fingerprint.detector import Detector
from dedup.index.contract import Index
from dedup.page.charset import decode
from dedup.page.flat import CODE
from dedup.page.html import Page, parse
from dedup.page.urls import host
from dedup.page.words import fold_text

#: Elements that begin a line, each with what is written before it, and those that are no part of the text.
LINES = {
    **dict.fromkeys((
        "address", "article", "aside", "blockquote", "br", "caption", "center", "dd", "details", "dialog", "dir", "div", "dl",
        "fieldset", "figcaption", "figure", "footer", "form", "header", "hgroup", "hr", "legend", "main", "menu", "nav", "ol",
        "optgroup", "option", "search", "section", "summary", "tr", "ul",
    ), ""),
    **dict.fromkeys(("dt", "p", "pre", "table"), "\n"),
    **{f"h{n}": "\n" + "#" * n + " " for n in range(1, 7)},
    "li": "- ",
}  # fmt: skip
LEFT_OUT = CODE | {"head", "noscript", "template"}
#: Tokens of a page among which the next word of a block is looked for: those between are its attributes.
AHEAD = 64
#: A block is own if this share of its words is.
OWN = 0.2

Bools = npt.NDArray[np.bool_]


def own_text(
    html: bytes | str, url: str = "", index: Index | None = None, encoding: str | None = None
) -> str:
    """Returns the text of a page without the chrome of its host, its headings marked as in Markdown.  O(n); no page makes it raise.

    ``index`` knows the host, if it is open and pages of the host were claimed there; without one, marks alone tell.
    ``encoding`` is what the server said of the page.

    >>> page = "<nav><a href=/>Home</a></nav><h1>Brass lamps</h1><p>A lamp of brass,<br>made in <b>Storm Bay</b>.</p>"
    >>> print(own_text(page, "http://a.org/lamp"))
    # Brass lamps
    <BLANKLINE>
    A lamp of brass,
    made in Storm Bay.
    """
    detector = Detector() if index is None else index.detector
    chrome = None if index is None or index.hosts is None else index.hosts.table(host(url))
    roots: list[etree._Element] = []

    def tree(text: str) -> etree._Element:
        roots.append(parse(text))
        return roots[0]

    page = detector.read(decode(html, encoding), url, tree)
    if not roots:
        return ""
    tokens, (marked, own) = list(page.tokens), _own(page, chrome, detector)
    lines: list[str] = []
    at = 0
    for before, pieces, is_main in _blocks(roots[0]):
        mine = found = 0
        for word in b"".join(map(fold_text, pieces))[:-1].decode().split("\0"):
            place = next((n for n in range(at, min(len(tokens), at + AHEAD)) if tokens[n] == word), None)
            if place is not None:
                at, found, mine = place + 1, found + 1, mine + bool((marked if is_main else own)[place])
        if mine and mine >= OWN * found:
            text = before + " ".join("".join(pieces).split())
            lines += ["", text[1:]] if text[0] == "\n" else [text]
    return "\n".join(lines).strip("\n")


def _own(page: Page, chrome: Chrome | None, detector: Detector) -> tuple[Bools, Bools]:
    """Returns which tokens of a page are not marked as chrome, and which of these are in no shingle that many pages of its host have."""
    marked = np.ones(len(page.tokens), np.bool_)
    for start, end in page.chrome:
        marked[start:end] = False
    if not marked.any():
        marked[:] = True
    own = marked.copy()
    if chrome is not None and chrome.is_known and len(own):
        count = max(1, len(own) - detector.shingle_size + 1)
        values = detector.sketcher.values(detector.shingles(page)[:count])
        for place in np.flatnonzero(chrome.counts(values) >= chrome.few + 1):
            own[place : place + detector.shingle_size] = False
    return marked, own


def _blocks(root: etree._Element) -> Iterator[tuple[str, list[str], bool]]:
    """Yields the lines of a page: what is written before each, its pieces of text, and whether it is in a main element."""
    before, pieces, mains = "", list[str](), 0
    walk = etree.iterwalk(root, events=("start", "end", "comment", "pi"))
    for event, node in walk:
        tag = node.tag if isinstance(node.tag, str) else ""
        if tag in LINES:
            if "".join(pieces).strip():
                yield before, pieces, mains > 0
                before = ""
            pieces = []
            before = LINES[tag] or before if event == "start" else ""
            if tag == "main":
                mains += 1 if event == "start" else -1
        if event == "start" and tag in LEFT_OUT:
            walk.skip_subtree()
        elif event == "start":
            pieces.append(node.text or "")
        else:
            pieces += [" "] * (tag in ("td", "th")) + [node.tail or ""]
    if "".join(pieces).strip():
        yield before, pieces, mains > 0
