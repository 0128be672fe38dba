"""A shop that changes from crawl to crawl, with a log of what was done to it.

Every page has a menu, a sidebar that no markup tells from the content, and a footer with the date of the day, a counter of visits
and an advert: none of these is a change.
"""

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.crawls import Answer, Site, html, words

ADVERTS = [f"advert {words(f'advert {n}', 12)}" for n in range(8)]


@dataclass
class Product:
    name: str
    path: str
    text: str
    price: int
    is_listed: bool = True


@dataclass
class Shop(dict[str, Answer]):
    """A site of products in sections; what it answers depends on how often it was asked."""

    products: int = 60
    sections: int = 4
    seed: int = 7
    day: int = 1
    asked: int = 0
    moved: dict[str, str] = field(default_factory=dict)  # redirects
    goods: list[Product] = field(default_factory=list)
    instead: Answer | None = None  # what every page answers
    log: list[tuple[str, str]] = field(
        default_factory=list
    )  # what was done since the last crawl: word and path

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.made = 0
        for _ in range(self.products):
            self.add()
        self.log.clear()

    # --- What it shows

    def get(self, path: str, default: Any = None) -> Any:
        self.asked += 1
        if path == "/login":
            return html(f"<title>Log in</title><p>{words('log in', 60)}")
        if self.instead is not None:
            return self.instead
        if path in self.moved:
            return 301, {"Location": self.moved[path]}, b""
        if path == "/":
            links = "".join(f"<li><a href='/section/{n}'>section {n}</a>" for n in range(self.sections))
            return self.page("Home", f"<p>{words('home', 60)}</p><ul>{links}</ul>")
        kind, _, name = path.strip("/").partition("/")
        if kind == "section" and name.isdigit() and int(name) < self.sections:
            return self.page(f"Section {name}", self.listing(int(name)))
        found = next((one for one in self.goods if one.path == path), None)
        if found is None:
            return default
        body = f"<p>{found.text}</p><p>Price {found.price} crowns, ready to be sent</p>"
        return self.page(found.name, body)

    def listing(self, section: int) -> str:
        goods = [one for n, one in enumerate(self.goods) if one.is_listed and self.section(one) == section]
        rows = "".join(f"<li><a href='{one.path}'>{one.name}</a> {one.text[:60]}" for one in goods)
        return f"<p>{words(f'section {section}', 60)}</p><ul>{rows}</ul>"

    def section(self, product: Product) -> int:
        return int(product.name.split()[-1]) % self.sections

    def page(self, title: str, body: str) -> Answer:
        around = f"<div class=side>{words('sidebar', 80)}</div>"
        foot = f"<div class=foot>{words('foot', 20)} today is day {self.day} visits {self.asked} since {words('then', 9)}</div>"
        advert = (
            f"<div>{words('before advert', 6)} {self.chance.choice(ADVERTS)} {words('after advert', 6)}</div>"
        )
        menu = f"<nav><a href=/>Home</a> {words('menu', 30)}</nav>"
        return html(
            f"<!DOCTYPE html><title>{title}</title>{menu}{around}<h1>{title}</h1>{body}{advert}{foot}"
        )

    # --- What is done to it

    def add(self) -> None:
        self.made += 1
        name = f"Product {self.made}"
        self.goods.append(
            Product(name, f"/goods/{self.made}.html", words(name, 90), self.chance.randrange(10, 900))
        )
        self.log.append(("new", self.goods[-1].path))

    def edit(self, product: Product) -> None:
        before = product.text.split()
        at = self.chance.randrange(20, 80)
        before[at : at + 3] = words(f"edit {self.chance.random()}", 5).split()
        product.text = " ".join(before)
        self.log.append(("changed", product.path))

    def reprice(self, product: Product) -> None:
        product.price += 1_000
        self.log.append(("changed", product.path))

    def remove(self, product: Product) -> None:
        self.goods.remove(product)
        self.log.append(("gone", product.path))

    def hide(self, product: Product) -> None:
        product.is_listed = False
        self.log.append(("hidden", product.path))

    def move(self, product: Product, *, redirect: bool) -> None:
        old, product.path = product.path, f"/shop/{product.name.replace(' ', '-').lower()}"
        if redirect:
            self.moved[old] = product.path
        self.log.append(("moved", product.path))

    def live(self, share: float) -> set[tuple[str, str]]:
        """A night passes: as large a share of the products as that has something done to it.  What a crawl should say."""
        self.log.clear()
        self.day += 1
        before = {n: self.listing(n) for n in range(self.sections)}
        listed = [one for one in self.goods if one.is_listed and one.path.startswith("/goods/")]
        doings: list[Any] = [self.edit, self.reprice, self.remove, self.hide]
        doings += [lambda one: self.move(one, redirect=True), lambda one: self.move(one, redirect=False)]
        for n, product in enumerate(self.chance.sample(listed, round(share * len(listed)))):
            doings[n % len(doings)](product)
        for _ in range(max(1, round(share * self.products / 4))):
            self.add()
        changed = {("changed", f"/section/{n}") for n in range(self.sections) if self.listing(n) != before[n]}
        return {*self.log, *changed}


def crawling(site: Site, index: Path, *options: str, **settings: object) -> list[str]:
    """The arguments of a crawl of a site that can be killed: it asks two pages at a time, as fast as it can."""
    own = {"DEDUP_INDEX": f"file:{index}", "DEDUP_LOG": "", "CONCURRENT_REQUESTS": 2}
    own |= {"DOWNLOAD_DELAY": 0, "AUTOTHROTTLE_ENABLED": False} | settings
    given = [f"-s{name}={value}" for name, value in own.items()]
    return ["crawl", "site", "-a", f"start={site.url}", *options, *given]
