"""Test cases for the verdict: how pages change and stay the same (see `tests.support.pages.lookalikes` for the others).

`MUTATIONS` turn the HTML of any page into that of a near-duplicate: at most ``share`` of its tokens (words
of the visible text, URLs of links and images) are added, removed, replaced or moved, at least one; how many
is drawn uniformly.  Equal seeds give equal pages.

>>> page = '<p>In 1884</p><p>a gale</p><nav><a href="/a">A</a> <a href="/b">B</a></nav>'
>>> for name, mutation in MUTATIONS.items():
...     print(f"{name}: {mutation(page, random.Random(5), share=1)[12:-14]}")
adverts: ...<div class="advert">Sale Uldrewywy chopavertam ceganka</div>...
dates_and_counters: <p>In 6884</p><p>a gale</p>...
session_ids: ...<nav><a href="/a?zenid=7576026e2f9e2b7ff7cc6485">A</a> <a href="/b?zenid=7576026e2f9e2b7ff7cc6485">B</a></nav>
private_ids: ...<nav><a href="/a?visit=62b67576026e">A</a> <a href="/b?visit=62b67576026e">B</a></nav>
navigation: ...<nav><a href="/b">B</a> <a href="/a">A</a></nav>
related_links: ...<nav><a href="/chopavertam">chopavertam</a> <a href="/michocho">michocho</a></nav>
boilerplate: <div class="mirror">Mirror of the original</div>......
truncated: <p>In 1884</p><p>…</p><nav><a href="/a">…</a> <a href="/b">…</a></nav>
paragraphs_swapped: <p>a gale</p><p>In 1884</p>...
"""

import random
import re
from collections import Counter
from collections.abc import Callable
from itertools import accumulate, pairwise
from typing import Any

from lxml import etree
from lxml.html import HtmlElement, HTMLParser, document_fromstring, fragment_fromstring

from tests.support.pages.prose import Prose, address

Mutation = Callable[..., str]  #: of html, rng, share = .05
MUTATIONS: dict[str, Mutation] = {}

_SPACELESS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_SPACELESS}]|[^\W{_SPACELESS}]+")  # Thai, Han and the like: every letter a word
_HIDDEN = "ancestor::script or ancestor::style or ancestor::noscript or ancestor::template"
_TEXTS = etree.XPath(f".//text()[not({_HIDDEN})]")
_LINKS = etree.XPath(f".//a[@href and not({_HIDDEN})]")
_BLOCKS = ("p", "li", "td", "th", "dt", "dd", "pre", "div", "h1", "h2", "h3", "h4", "section", "blockquote")
_AWAY = re.compile(r"\s*(?!#|(?!https?:)[a-z]+:)\S", re.IGNORECASE)  # to another page
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTH = rf"\b(?:{'|'.join(_MONTHS)})[a-z]*"
_DATED = re.compile(rf"\d+\.? {_MONTH}(?: \d+)?\b|{_MONTH} \d+(?:, \d+)?\b|\b\d+(?:[T:./,-]\d+)*Z?\b")
_SESSIONS = (";jsessionid=", "PHPSESSID=", "sid=", "session_id=", "sessionid=", "osCsid=", "zenid=", "CFID=")
_MIRROR = "Mirror of the original site, updated every night by volunteers. Report broken links to its keeper."


class _Page:
    """A parsed page of which a limited number of tokens may be changed."""

    def __init__(self, html: str, rng: random.Random, share: float) -> None:
        data = html.replace("\x00", "").encode("utf-8", "replace")
        parser = HTMLParser(encoding="utf-8", huge_tree=True, default_doctype=False)
        try:
            self.root = document_fromstring(data, parser=parser)
        except etree.ParserError:  # nothing in it
            self.root = document_fromstring("<p></p>")
        body = self.root.find("body")
        self.body: HtmlElement = etree.SubElement(self.root, "body") if body is None else body
        self.rng, self.prose = rng, Prose(rng)
        self.left = max(1, int(rng.uniform(0, share) * _size(self.root)))

    def html(self) -> str:
        return etree.tostring(self.root.getroottree(), encoding="unicode", method="html")

    def blocks(self) -> list[HtmlElement]:
        """The innermost blocks that hold words; without any, the body."""
        inner = (box for box in self.body.iter(*_BLOCKS) if next(box.iterdescendants(*_BLOCKS), None) is None)
        return [box for box in inner if any(map(_WORD.search, _TEXTS(box)))] or [self.body]

    def links(self) -> list[HtmlElement]:
        return [link for link in _LINKS(self.body) if _AWAY.match(link.get("href"))]

    def menu(self, least: int = 0) -> list[HtmlElement]:
        """Neighbours in some list of links, of as many tokens as may be changed; [] if there are none."""
        menus: dict[HtmlElement, list[HtmlElement]] = {}
        for link in self.links():
            around = (box for box in link.iterancestors() if box.tag not in {"li", "span", "td", "b", "i"})
            menus.setdefault(next(around), []).append(link)
        for box, menu in self.rng.sample(list(menus.items()), len(menus)):
            if _size(box) > 2 * sum(map(_size, menu)):
                continue  # links in a text
            some = menu[self.rng.randrange(max(1, len(menu) - 1)) :]
            costs = accumulate(map(_size, some))
            some = [link for link, cost in zip(some, costs, strict=True) if cost <= max(self.left, least)]
            if len({(link.text_content(), link.get("href")) for link in some}) > 1:
                return some
        return []

    def insert(self, name: str, text: str, after: HtmlElement | None = None) -> None:
        """A new block of as many words of a text as may be added; at the end if nowhere else."""
        words = text.split()[: self.left]
        self.left -= len(words)
        block = fragment_fromstring(f'<div class="{name}">{" ".join(words)}</div>')
        if after is None or after is self.body:
            self.body.append(block)
        else:
            after.addnext(block)


def _size(top: HtmlElement) -> int:
    """Tokens in an element: its words, links and images."""
    urls = [*(a.get("href") for a in top.iter("a", "area")), *(image.get("src") for image in top.iter("img"))]
    return len(_WORD.findall(" ".join(_TEXTS(top)))) + sum(bool(_AWAY.match(url or "")) for url in urls)


def _rearrange(elements: list[HtmlElement], order: list[HtmlElement]) -> None:
    """Gives each element what the one at its place in the order holds."""
    held = [(element.text, list(element), dict(element.attrib)) for element in order]
    for element, (text, children, attributes) in zip(elements, held, strict=True):
        element.attrib.clear()
        element.attrib.update(attributes)
        element[:], element.text = children, text


def _mutation(change: Callable[[_Page], None]) -> Callable[[_Page], None]:
    def mutate(html: str, rng: random.Random, share: float = 0.05) -> str:
        page = _Page(html, rng, share)
        before = page.html()
        change(page)
        if page.html() == before:  # nothing on it that could be changed
            page.insert("new", page.prose.text(page.left))
        return page.html()

    MUTATIONS[change.__name__] = mutate
    return change


@_mutation
def adverts(page: _Page) -> None:
    """Adverts between the blocks of the page."""
    blocks = page.blocks()
    while page.left:
        page.insert("advert", f"Sale {page.prose.text(page.rng.randint(4, 30))}", page.rng.choice(blocks))


@_mutation
def dates_and_counters(page: _Page) -> None:
    """Other numbers, times and dates, scattered over the page."""

    def renew(old: re.Match[str]) -> str:
        if (cost := len(_WORD.findall(old[0]))) > page.left or page.rng.random() < 0.3:
            return old[0]
        page.left -= cost
        return re.sub(rf"\d+|{_MONTH}", other, old[0])

    def other(old: re.Match[str]) -> str:
        new = old[0]
        while new == old[0]:
            digits = "".join(page.rng.choices("0123456789", k=len(new)))
            new = digits if new.isdecimal() else page.rng.choice(_MONTHS)
        return new

    texts = _TEXTS(page.body)
    for text in page.rng.sample(texts, len(texts)):
        setattr(text.getparent(), "tail" if text.is_tail else "text", _DATED.sub(renew, text))


@_mutation
def session_ids(page: _Page) -> None:
    """A session id, under one of the well-known names, in every link, however many there are."""
    _mark(page.links(), page.rng.choice(_SESSIONS) + f"{page.rng.getrandbits(96):024x}")


@_mutation
def private_ids(page: _Page) -> None:
    """An id under a name that only this site knows, in some links, scattered."""
    links = page.links()
    _mark(page.rng.sample(links, min(page.left, len(links))), f"visit={page.rng.getrandbits(48):012x}")


def _mark(links: list[HtmlElement], mark: str) -> None:
    for link in links:
        address, fragment, anchor = (link.get("href") or "").partition("#")
        path, question, query = address.partition("?")
        if mark.startswith(";"):
            path += mark
        else:
            question, query = "?", f"{query}&{mark}" if query else mark
        link.set("href", path + question + query + fragment + anchor)


@_mutation
def navigation(page: _Page) -> None:
    """Neighbours in a menu, in another order."""
    links = page.menu(least=8)  # two, mostly
    for _ in links[:3]:
        _rearrange(links, page.rng.sample(links, len(links)))


@_mutation
def related_links(page: _Page) -> None:
    """Neighbours in a list of links, replaced by links to other pages."""
    for link in page.menu():
        title = page.prose.text(max(1, len(_WORD.findall(link.text_content()))))[:-1]
        link[:], link.text = [], title
        link.set("href", address(title))


@_mutation
def boilerplate(page: _Page) -> None:
    """What a mirror writes above or below the page."""
    page.insert("mirror", f"{_MIRROR} {page.prose.text(page.left)}")
    page.body.insert(page.rng.choice([0, len(page.body)]), page.body[-1])


@_mutation
def truncated(page: _Page) -> None:
    """The text cut short: the end of the longest run of blocks."""
    runs = Counter[Any]()
    for block in page.blocks():
        runs[block.getparent()] += _size(block)
    for text in reversed(_TEXTS(runs.most_common(1)[0][0])):
        if page.left and (words := list(_WORD.finditer(text))[-page.left :]):
            page.left -= len(words)
            setattr(text.getparent(), "tail" if text.is_tail else "text", text[: words[0].start()] + "…")


@_mutation
def paragraphs_swapped(page: _Page) -> None:
    """Neighbouring paragraphs swapped, as far as the shorter ones may be moved; if none may, the shortest."""
    near = [(a, b) for a, b in pairwise(page.blocks()) if a.tag == b.tag]
    pairs = [(min(_size(a), _size(b)), a, b) for a, b in near if a.text_content() != b.text_content()]
    for cost, a, b in page.rng.sample(pairs, len(pairs)):
        if 10 <= cost <= page.left:
            page.left -= cost
            _rearrange([a, b], [b, a])
            pairs = []
    for _, a, b in sorted(pairs, key=lambda pair: pair[0])[:1]:
        _rearrange([a, b], [b, a])
