"""Generated shops: distinct pages in the large chrome of a site, and true copies of them.

A product's page is a menu, a side menu of its category, an advert, the product's own text, links and a footer.
Of 25 shops, the chrome has 100 to 2,000 words, and the own text 10 to 300.

>>> shop = Shop("shop.example", chrome=300, own=25, seed=1)
>>> page, copy = shop.page(7, random.Random(1)), shop.copy(7, "count", random.Random(2))
>>> page.content == copy.content, page.url == copy.url, page.html == copy.html
(True, False, False)
>>> pages = trap("counter", random.Random(1), copies=5)
>>> len(pages), len({page.content for page in pages}), len({page.url for page in pages})
(35, 30, 35)
"""

import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tests.support.pages.prose import Prose, address

#: Products of a shop.
PRODUCTS = 100
#: Words of a shop's chrome, and of a product's own text.
CHROME, OWN = (100, 300, 600, 1000, 2000), (10, 25, 60, 150, 300)


class ShopPage(NamedTuple):
    """A page of a shop."""

    url: str
    html: str
    content: str  #: what the page is about: equal for a page and its copies
    own: int  #: words of its own text
    copy: str  #: which kind of copy it is; "" for the page itself


class _Noise(NamedTuple):
    """What two views of one page differ in."""

    text: str  #: the product's own text
    advert: str
    views: int = 12
    day: str = "2026-01-01"
    tracking: str = ""


class Shop:
    """A shop of some products, by default 100."""

    def __init__(self, host: str, chrome: int, own: int, seed: int, products: int = PRODUCTS) -> None:
        self.host, self.own, self.prose = host, own, Prose(random.Random(seed))
        # Every second shop marks its chrome up as such; of every four, two draw an advert for each view.
        self._tags = ("nav", "aside", "footer") if seed % 2 == 0 else ("div", "div", "div")
        self._draws_adverts = seed % 4 > 1
        self._menu = links(self.prose, chrome * 2 // 5)
        self._sides = [links(self.prose, chrome // 5) for _ in range(5)]
        self._foot = links(self.prose, chrome // 5) + f"<p>{self.prose.text(chrome // 5)}</p>"
        self.adverts = [self.prose.text(self.prose.rng.randint(10, 50)) for _ in range(12)]
        self._titles = [self.prose.text(4)[:-1] for _ in range(products)]
        self.texts = [self.prose.text(own) for _ in range(products)]
        self._prices = [self.prose.rng.randint(5, 900) for _ in range(products)]

    def page(self, product: int, rng: random.Random) -> ShopPage:
        """A product's page."""
        return self._page(product, f"http://{self.host}/p/{product}", rng)

    def copy(self, product: int, kind: str, rng: random.Random) -> ShopPage:
        """The same page under another address, with noise of one of the kinds in `COPIES`."""
        return self.copy_with(product, kind, rng, **COPIES[kind](self, product, rng))

    def copy_with(self, product: int, kind: str, rng: random.Random, **noise: Any) -> ShopPage:
        """The same page under another address, with some noise."""
        url = f"http://{self.host}/p/{product}?ref={rng.getrandbits(32):08x}"
        if kind == "mirror":
            url = f"http://mirror.{self.host}/p/{product}"
        return self._page(product, url, rng, kind, **noise)

    def _page(self, product: int, url: str, rng: random.Random, copy: str = "", **noise: Any) -> ShopPage:
        advert = rng.choice(self.adverts) if self._draws_adverts else self.adverts[0]
        view = _Noise(self.texts[product], advert)._replace(**noise)
        menu, side, foot = self._tags
        html = (
            f"<!DOCTYPE html><html><head><title>{self.host}</title></head><body>"
            f"<{menu}>{self._menu}</{menu}><{side}>{self._sides[product % 5]}</{side}><div>{view.advert}</div>"
            f"<div><h1>{self._titles[product]}</h1><p>EUR {self._prices[product]}</p><p>{view.text}</p>"
            f"<p>viewed {view.views} times, updated {view.day}</p>"
            f'<a href="/p/{(product + 1) % len(self.texts)}{view.tracking}">next</a></div>'
            f"<{foot}>{self._foot}</{foot}></body></html>"
        )
        return ShopPage(url, html, f"{self.host}/{product}", self.own, copy)


def links(prose: Prose, words: int) -> str:
    """A menu of about that many words."""
    items = []
    while words > 0:
        title = prose.text(min(words, prose.rng.randint(1, 3)))[:-1]
        items.append(f'<li><a href="/c{address(title)}">{title}</a></li>')
        words -= len(title.split())
    return f"<ul>{''.join(items)}</ul>"


#: What the kinds of true copies change.
COPIES: dict[str, Callable[[Shop, int, random.Random], dict[str, Any]]] = {
    "count": lambda shop, product, rng: {"views": rng.randint(13, 9999)},
    "date": lambda shop, product, rng: {
        "day": f"{rng.randint(2019, 2025)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
    },
    "track": lambda shop, product, rng: {"tracking": f"?ref={rng.getrandbits(48):012x}"},
    "mirror": lambda shop, product, rng: {},
    "edit": lambda shop, product, rng: {"text": _edited(shop.texts[product], shop.prose, rng)},
    "advert": lambda shop, product, rng: {"advert": rng.choice(shop.adverts)},
}


def _edited(text: str, prose: Prose, rng: random.Random) -> str:
    """The text with one word in twenty replaced, in one place."""
    words = text.split()
    size = max(1, len(words) // 20)
    start = rng.randrange(len(words) - size + 1)
    words[start : start + size] = prose.text(size).split()
    return " ".join(words)


def shops(seed: int, numbers: range = range(25), copies: int = 8) -> Iterator[list[ShopPage]]:
    """The pages of each shop: its products, then ``copies`` of each kind."""
    rng = random.Random(seed)
    for number in numbers:
        shop = Shop(f"shop{number}.example", CHROME[number % 5], OWN[number // 5 % 5], seed * 1000 + number)
        pages = [shop.page(product, rng) for product in range(PRODUCTS)]
        for kind in COPIES:
            pages += [shop.copy(product, kind, rng) for product in rng.sample(range(PRODUCTS), copies)]
        yield pages


#: Products that a trap's site has beside the one that is copied; and which one that is.
OTHERS, COPIED = 30, 3


def trap(
    kind: str, rng: random.Random, *, chrome: int = 300, own: int = 150, copies: int = 200
) -> list[ShopPage]:
    """A site of 30 products, one of which is found under ``copies`` more addresses, each view of it different.

    In "counter", a counter and a date differ, in "pool" an advert out of twelve.
    """
    shop = Shop("trap.example", chrome, own, seed=5)
    pages = [shop.page(product, rng) for product in range(OTHERS)]
    for view in range(copies):
        noise = {
            "counter": {"views": 13 + view, "day": f"2026-02-{1 + view % 28:02}"},
            "pool": {"advert": rng.choice(shop.adverts)},
        }[kind]
        pages.append(shop.copy_with(COPIED, kind, rng, **noise))
    return pages
