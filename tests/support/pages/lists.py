"""Generated lists in the chrome of a site, and the traps that crawlers fall into.

>>> len({page.url for page in lists(random.Random(1))})
30
>>> pages = trap("counter", random.Random(1), copies=5)
>>> len(pages), len({page.content for page in pages}), len({page.url for page in pages})
(35, 30, 35)
"""

import random

from tests.support.pages.prose import Prose
from tests.support.pages.shops import Shop, ShopPage, links

#: Traps, by what each of their copies changes.
TRAPS = ("counter", "pool", "new words")
#: Products that a trap's site has beside the one that is copied; and which one that is.
OTHERS, COPIED = 30, 3


def lists(rng: random.Random, count: int = 30, chrome: int = 700, items: int = 20) -> list[ShopPage]:
    """Pages of a list of titles: what a category, an archive or a search shows."""
    prose = Prose(rng)
    menu, foot = links(prose, chrome * 2 // 3), links(prose, chrome // 3)
    pages = []
    for number in range(count):
        rows = "".join(f"<li>{prose.text(rng.randint(2, 5))}" for _ in range(items))
        html = f"<title>Archive</title><div>{menu}</div><h1>Archive</h1><ol>{rows}</ol><div>{foot}</div>"
        pages.append(ShopPage(f"http://list.example/{number}", html, f"list {number}", items, ""))
    return pages


def trap(
    kind: str, rng: random.Random, *, chrome: int = 300, own: int = 150, copies: int = 200
) -> list[ShopPage]:
    """A site of 30 products, one of which is found under ``copies`` more addresses, each view of it different.

    In "counter", a counter and a date differ, in "pool" an advert out of twelve, and in "new words" an advert that
    nobody has seen before.
    """
    shop = Shop("trap.example", chrome, own, seed=5)
    pages = [shop.page(product, rng) for product in range(OTHERS)]
    for view in range(copies):
        noise = {
            "counter": {"views": 13 + view, "day": f"2026-02-{1 + view % 28:02}"},
            "pool": {"advert": rng.choice(shop.adverts)},
            "new words": {"advert": shop.prose.text(rng.randint(10, 50))},
        }[kind]
        pages.append(shop.copy_with(COPIED, kind, rng, **noise))
    return pages
