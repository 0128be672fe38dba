"""Sites of strangers: drawn by a seed from forms, facts, noise and addresses, with what each page of them says.

A site has things in variants.  What a page says of itself is drawn once, for it or for its thing; what is live, in each
answer.  Two pages are one content if they say the same, whatever is live.
"""

import json
from collections.abc import Callable, Sequence
from functools import partial
from html import escape
from random import Random
from typing import NamedTuple

from tests.support.living import HOST, MIRROR, Answering, Chance, name, slug, text

WORDS = ["red", "green", "blue", "gold", "pink", "grey", "teal", "plum", "rust", "lime", "navy", "sand"]
LABELS = ["Rate", "Level", "Size", "Owner", "State", "From", "Until", "Price", "Seats", "Grade"]
#: Facts, by their sorts.
FACTS: dict[str, Callable[[Random], str]] = {
    "word": lambda chance: chance.choice(WORDS),
    "two words": lambda chance: " ".join(chance.choices(WORDS, k=2)),
    "number": lambda chance: str(chance.randrange(10, 99)),
    "large": lambda chance: f"{chance.randrange(1000, 99_999):,}",
    "price": lambda chance: f"{chance.randrange(1, 60)}.{chance.randrange(10, 99)}",
    "percent": lambda chance: f"{chance.randrange(1, 99)}%",
    "date": lambda chance: f"2026-0{chance.randrange(1, 9)}-{chance.randrange(10, 28)}",
    "time": lambda chance: f"{chance.randrange(10, 23)}:{chance.randrange(10, 59)}",
    "range": lambda chance: f"{chance.randrange(1, 9)}-{chance.randrange(10, 19)}",
    "name": lambda chance: chance.choice(["Ann Lee", "Bob Ray", "Cid Moe", "Dan Fox", "Eve Day", "Flo Kay"]),
    "sign": lambda chance: chance.choice("✓✗★☆–"),
    "city": lambda chance: chance.choice(["北京", "上海", "广州", "深圳", "天津"]),
    "answer": lambda chance: chance.choice(["yes", "no"]),
    "code": lambda chance: chance.randbytes(3).hex(),
    "id": lambda chance: chance.randbytes(16).hex(),
    "phrase": lambda chance: text(6, ("phrase", chance.randrange(30))),
}
#: Rows of a label and a fact, and what is around them.
ROWS = {
    "table": ("<table>{}</table>", "<tr><th>{}</th><td>{}</td></tr>"),
    "cells": ("<table><tr>{}</tr></table>", "<td title={}>{}</td>"),
    "terms": ("<dl>{}</dl>", "<dt>{}</dt><dd>{}</dd>"),
    "items": ("<ul>{}</ul>", "<li>{}: {}</li>"),
    "items alone": ("<ul>{}</ul>", "<li><!-- {} -->{}</li>"),
    "paragraphs": ("{}", "<p>{}: {}</p>"),
    "breaks": ("<p>{}</p>", "{}: {}<br>"),
    "sentences": ("<p>{}</p>", "The {} is {}. "),
    "commas": ("<p>{}</p>", "{} {}, "),
    "commas alone": ("<p>{}</p>", "<!-- {} -->{}, "),
    "spans": ("<div>{}</div>", "<span class=l>{}</span><span class=v>{}</span>"),
    "cards": ("<div>{}</div>", "<div class=card><h4>{}</h4><div>{}</div></div>"),
    "headings": ("{}", "<h3>{}</h3><p>{}</p>"),
    "titles": ("<div>{}</div>", "<img src=/i.png alt={} title='{}'>"),
    "images": ("<div>{}</div>", "<img alt={} src='/img/{}.png'>"),
    "images by query": ("<div>{}</div>", "<img alt={} src='/img?n={}'>"),
    "images alone": ("<div>{}</div>", "<!-- {} --><img src='/img/{}.png'>"),
    "frames": ("<div>{}</div>", "<!-- {} --><iframe src='https://maps.example/e?q={}'></iframe>"),
    "data": ("<div>{}</div>", "<div data-{}='{}'></div>"),
    "fields": ("<form>{}</form>", "<input name={} value='{}'>"),
    "options": ("<select>{}</select>", "<option>{} {}</option>"),
    "meters": ("<div>{}</div>", "<label>{}</label><meter value='{}'></meter>"),
    "JSON": ("<script type=application/ld+json>[{}0]</script>", '"{}","{}",'),
    "drawing": ("<svg>{}</svg>", "<text>{} {}</text>"),
    "code": ("<pre><code>{}</code></pre>", "let {} = {};\n"),
    "lists in a list": ("<ul>{}</ul>", "<li>{}<ul><li>{}</li></ul></li>"),
}
#: Addresses of a variant of a thing, given the name and the number of the thing, and the variant.
ADDRESSES: Sequence[Callable[[str, int, str], str]] = (
    lambda thing, at, variant: f"/view?id={at}&v={variant}",
    lambda thing, at, variant: f"/{thing}?of={variant}",
    lambda thing, at, variant: f"/{thing}/{variant}",
    lambda thing, at, variant: f"/{variant}/{thing}",
    lambda thing, at, variant: f"/shop/{thing}/{variant}/",
    lambda thing, at, variant: f"/{thing}/{variant}/view",
    lambda thing, at, variant: f"/{thing}-{variant}",
    lambda thing, at, variant: f"/{thing}.{variant}.html",
    lambda thing, at, variant: f"/x?{thing}={variant}",
    lambda thing, at, variant: f"/{variant}/x/{thing}/",
)


class Saying:
    """One answer of a page, as it is made: what it says of itself, and what is live."""

    def __init__(self, site: "Site", thing: int, variant: int, chance: Chance) -> None:
        self._site, self.thing, self.variant, self.chance = site, thing, variant, chance
        self.said = list[str]()

    def fact(self, sort: str, source: str, at: object) -> str:
        """A fact of a sort, which tells variants apart, or things, or none, or is live; ``at`` is where on the page."""
        if source == "live":
            return FACTS[sort](self.chance)
        seed = [self._site.seed, source, at]
        if source != "site":
            differs = source == "own" and Random(f"{seed} {self.variant}").random() < self._site.share
            seed += [self.thing, self.variant if differs else 0]
        found = FACTS[sort](Random(str(seed)))
        if source != "site":
            self.said.append(found)
        return found


class Block(NamedTuple):
    """A block of a page: rows of facts, each of a sort and from a source."""

    number: int
    form: str
    facts: Sequence[tuple[str, str, str]]  #: label, sort and source
    in_any_order: bool
    lines: int  #: the same rows, so often
    around: str  #: an attribute that is live

    def html(self, page: Saying) -> str:
        around, row = ROWS[self.form]
        rows = [
            row.format(label, escape(page.fact(sort, source, (self.number, line, label))))
            for line in range(self.lines)
            for label, sort, source in self.facts
        ]
        if self.in_any_order:
            page.chance.shuffle(rows)
        found = around.format("".join(rows))
        return f"<div {self.around}={page.chance.randbytes(4).hex()}>{found}</div>" if self.around else found


class Site:
    """A site of a stranger."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._chance = chance = Random(f"stranger {seed}")
        self.share = chance.choice(
            [0.1, 0.3, 0.6]
        )  #: of its own facts in which a variant differs from its thing
        self._blocks = [self._block(number) for number in range(chance.randrange(1, 6))]
        self._things, self._variants = chance.choice(
            [(1, 9), (1, 12), (4, 4), (6, 5), (10, 2), (12, 3), (16, 1)]
        )
        self._address, self._in_words = chance.choice(ADDRESSES), chance.random() < 0.5
        self._prose, self._menu, self._footer = (chance.choice([0, length]) for length in (40, 30, 40))
        self._is_named, self._copied = chance.random() < 0.6, chance.choice([0, 0.3, 0.6])
        self._swaps = chance.random() < 0.1
        self._advert = chance.choice(["", "", "<p>{}</p>", "<div class=ad><a href=/go>{}</a></div>"])

    def _block(self, number: int) -> Block:
        chance, labels = self._chance, self._chance.sample(LABELS, self._chance.randrange(1, 6))
        sorts = chance.choices([*FACTS], k=len(labels) if chance.random() < 0.7 else 1)
        sources = chance.choices(["own", "thing", "site", "live"], [5, 2, 1, 4], k=len(labels))
        facts = [(label, chance.choice(sorts), source) for label, source in zip(labels, sources, strict=True)]
        around = chance.choice(["", "", "", "", "id", "class", "data-x"])
        return Block(
            number,
            chance.choice([*ROWS]),
            facts,
            chance.random() < 0.2,
            chance.choice([1, 1, 1, 2, 4]),
            around,
        )

    def _html(self, thing: int, variant: int, printed: bool, chance: Chance) -> str:
        return self._answer(thing, variant, printed, chance)[0]

    def _answer(self, thing: int, variant: int, printed: bool, chance: Chance) -> tuple[str, list[str]]:
        page = Saying(self, thing, variant, chance)
        blocks = [block.html(page) for block in self._blocks]
        if self._swaps and chance.random() < 0.5:
            blocks.reverse()
        title = name(thing, ("thing", self.seed)) if self._is_named else "Our site"
        page.said += [title] if self._is_named else []
        if self._prose:
            page.said.append(f"prose {thing}")
            blocks.insert(0, f"<p>{text(self._prose, ('prose', self.seed, thing))}</p>")
        body = f"<h1>{title}</h1>{''.join(blocks)}"
        if printed:
            return f"<title>{title} - print version</title>{body}<p>Printed from our site", page.said
        menu = "".join(f"<li><a href=/m/{at}>{text(2, ('menu', at))}</a>" for at in range(self._menu))
        advert = self._advert.format(text(15, ("advert", chance.randrange(12))))
        below = f"{advert}<p>{text(self._footer, 'footer') if self._footer else ''}"
        return f"<title>{title}</title><ul>{menu}</ul><div>{body}</div>{below}", page.said

    def pages(self) -> list[Answering]:
        """Its pages, and copies of some."""
        found = dict[str, Answering]()
        for thing in range(self._things):
            for variant in range(self._variants):
                called = WORDS[variant] if self._in_words else str(variant + 1)
                path = self._address(slug(thing, ("address", self.seed)), thing, called)
                key = json.dumps(self._answer(thing, variant, False, Chance(0))[1])
                mark = "&" if "?" in path else "?"
                copies = {
                    f"{HOST}{path}{mark}utm_source=mail": "utm",
                    f"{HOST}{path}{mark}sid={Random(path).randbytes(16).hex()}": "session",
                    f"{HOST}{path}{mark}x=mail": "unknown",
                    f"{MIRROR}{path}": "mirror",
                    f"{HOST}/print{path}": "print",
                }
                is_copied = self._chance.random() < self._copied
                some = self._chance.sample([*copies], 3) if is_copied else []
                for url in (HOST + path, *some):
                    form = copies.get(url, "")
                    html = partial(self._html, thing, variant, form == "print")
                    found.setdefault(url, Answering(url, key, html, form))
        return [*found.values()]
