"""Generated traps that crawlers fall into.

>>> pages = trap("counter", random.Random(1), copies=5)
>>> len(pages), len({page.content for page in pages}), len({page.url for page in pages})
(35, 30, 35)
"""

import random

from tests.support.pages.shops import Shop, ShopPage

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
