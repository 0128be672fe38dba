"""Generated manuals of several releases: short pages in large chrome, and the chrome is another in each release.

>>> pages = manual(random.Random(1), pages=10, releases=2)
>>> pages[0].url.partition("/docs/")[2].partition("/")[0], len(pages)
('0.0', 20)
"""

import random

from tests.support.pages.prose import Prose
from tests.support.pages.shops import ShopPage


def manual(rng: random.Random, *, pages: int = 60, releases: int = 4, chrome: int = 120) -> list[ShopPage]:
    """Pages of 5 to 60 words each; in a new release, one text in eight and a third of the menu are new."""
    prose = Prose(rng)
    names = [prose.text(3) for _ in range(pages)]
    texts = [""] * pages
    menu = [""] * (chrome // 3)
    found = []
    for release in range(releases):
        menu = [prose.text(3) if not release or rng.random() < 1 / 3 else item for item in menu]
        items = "".join(f"<li>{item}" for item in menu)
        texts = [
            prose.text(rng.randint(5, 60)) if not release or rng.random() < 1 / 8 else text for text in texts
        ]
        for name, text in zip(names, texts, strict=True):
            html = (
                f"<title>{name}</title><nav>{items}</nav><h1>{name}</h1><p>{text}"
                f"<footer>Release {release}, {menu[0]}</footer>"
            )
            url = f"http://manual.example/docs/{release}.0/{name.replace(' ', '-')}.html"
            found.append(ShopPage(url, html, f"{name}: {text}", len(text.split()), ""))
    return found
