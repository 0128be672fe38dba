"""A small web site to crawl on loopback: the museum of a lighthouse, with the duplicates of a real site.

Every page is built from a seed.  As on a real site, the adverts, the visitor counter, the clock and the
session ids change at each request; all of them follow from the running number of the request.

The site has articles, each of them also in a mirror and as a printer version, and one of them under session
ids; a calendar that goes on for 20 years; and pages that only look alike: products, a numbered list, staff
cards.

>>> site = Site()
>>> site.render("/staff/anna", visit=1)
(200, 'text/html; charset=utf-8', b'...Anna looks after our lamps. Visitor 184224...')
>>> site.truth["/print/the-fog-signal"], site.truth["/mirror/articles/the-fog-signal"]
('the-fog-signal', 'the-fog-signal')
"""

import itertools
import random
import re
import threading
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from string import Template

_CALENDAR = 240  # months, a page each
_EDITION = 474  # of all texts, chosen so that with seed 7 the verdicts are safe: see tests/test_demo.py
_HTML = "text/html; charset=utf-8"
_SECTIONS = {"keepers": slice(0, 5), "ships": slice(5, 10), "shore": slice(10, 14)}  # of the articles
_NUMBERS = {"year": range(1790, 1950), "n": range(3, 90)}  # words of {year} and {n}
_TEXTS = tomllib.loads(Path(__file__).with_name("demo.toml").read_text("utf-8"))
_ARTICLES, _PRODUCTS, _STAFF, _WORDS = (_TEXTS[kind] for kind in ("articles", "products", "staff", "words"))
_STORY, _GOODS, _ENTRIES = (_TEXTS["sentences"][kind] for kind in ("story", "goods", "entries"))
_NAV, _BANNER, _LAMP = (_TEXTS["html"][part] for part in ("nav", "banner", "lamp"))
_PAGE = Template(_TEXTS["html"]["page"])


class _Writer:
    """Fills sentences with words; a word comes again only after all others of its kind were used."""

    def __init__(self, seed: str, own: str = "ropes, lamps, boats, charts, bells") -> None:
        self._random = random.Random(seed)
        self._words = {"own": own, **_WORDS}
        self._decks: dict[str, list[str]] = {}

    def _draw(self, cards: str, separator: str) -> str:
        deck = self._decks.setdefault(cards, [])
        if not deck:
            deck += " ".join(cards.split()).split(separator)
            self._random.shuffle(deck)
        return deck.pop()

    def _fill(self, slot: re.Match[str]) -> str:
        kind = slot[1].lower()
        if numbers := _NUMBERS.get(kind):
            return str(self._random.choice(numbers))
        word = self._draw(self._words[kind], ", ")
        return word[0].upper() + word[1:] if slot[1][0].isupper() else word

    def sentences(self, templates: str, count: int) -> list[str]:
        return [re.sub(r"\{(\w+)\}", self._fill, self._draw(templates, " | ")) for _ in range(count)]

    def text(self, templates: str, count: int) -> str:
        lines = self.sentences(templates, count)
        return "\n".join(f"<p>{' '.join(lines[at : at + 6])}</p>" for at in range(0, count, 6))

    def index(self, folder: str, slugs: Iterable[str], count: int) -> str:
        """The text of an introduction, and of some sentences about each page of a folder."""
        links = [f"<h2>{_link(folder + slug, _title(slug))}</h2>{self.text(_STORY, count)}" for slug in slugs]
        return "\n".join([self.text(_STORY, 12), *links])


def _link(href: str, text: str) -> str:
    return f'<a href="{href}">{text}</a>'


def _title(slug: str) -> str:
    return slug.replace("-", " ").capitalize()


class Site:
    """The pages, by path; ``truth`` names the content of each: equal names are near-duplicates."""

    def __init__(self, seed: int = 7) -> None:
        self.pages: dict[str, Template] = {}
        self.truth: dict[str, str] = {}
        self._seed = seed
        self._sids = [f"{random.Random(f'{seed} sid {n}').getrandbits(48):012x}" for n in range(10)]
        self._articles()
        self._look_alikes()
        self._calendar()

    def render(self, path: str, visit: int) -> tuple[int, str, bytes]:
        """The status, content type and body of a path (with its query) at the ``visit``-th request."""
        if path == "/robots.txt":
            return 200, "text/plain; charset=utf-8", b"User-agent: *\nDisallow: /private/\n"
        if path.partition("?")[0] == "/lamp.svg":
            return 200, "image/svg+xml", _LAMP.encode()
        if path not in self.pages:
            return 404, _HTML, b"<!DOCTYPE html><title>Not found</title><p>There is no such page."
        chance = random.Random(f"{self._seed} visit {visit}")
        adverts = [
            f"Only today at Fenwick's: {', '.join(chance.sample(['rope', 'lamps', 'oil', 'tea', 'tar'], 5))}.",
            f'<img src="/lamp.svg?{chance.randrange(10**6)}" alt="">The Gannet Inn serves herring soup.',
            "Boats to the island, today and daily.",
        ]
        values = {
            "adverts": "".join(f"<p>{advert}</p>" for advert in chance.sample(adverts, 3)),
            "counter": str(184_223 + visit),
            "clock": f"{datetime(2026, 5, 4, 9, 30) + timedelta(seconds=7 * visit):%Y%m%dT%H%M%SZ}",
            "sid": chance.choice(self._sids),
        }
        page = self.pages[path].substitute(values)
        if path.startswith("/mirror/articles/"):
            page = page.replace("</footer>", _BANNER)
        return 200, _HTML, page.encode()

    def _writer(self, name: str, *own: str) -> _Writer:
        return _Writer(f"{self._seed} {_EDITION} {name}", *own)

    def _add(self, path: str, content: str, title: str, body: str, mirror: bool = False) -> None:
        """Adds a page, and with ``mirror`` another under /mirror/; the pages of folders get a link with a session id."""
        root = "../" * (path.removeprefix("/mirror").count("/") - 1)
        nav = "" if path.startswith("/print/") else _NAV
        session = _link(f"{root}articles/the-keepers-log?sid=$sid", "Go on reading") * path.endswith("/")
        page = Template(_PAGE.substitute(root=root, nav=nav, title=title, body=body, session=session))
        for address in (path, "/mirror" + path) if mirror else (path,):
            self.pages[address], self.truth[address] = page, content

    def _articles(self) -> None:
        slugs = list(_ARTICLES)
        for slug, other in zip(slugs, slugs[5:] + slugs[:5], strict=True):
            body = self._writer(slug, _ARTICLES[slug]).text(_STORY, 40)
            body += f"<p>See also: {_link('../articles/' + other, _title(other))}.</p>"
            self._add("/print/" + slug, slug, _title(slug), body)
            body += f"<p>{_link('/print/' + slug, 'Print')}</p>"
            self._add("/articles/" + slug, slug, _title(slug), body, mirror=True)
        log = "/articles/the-keepers-log"
        for path in [f"{root}{log}?sid={sid}" for root in ("", "/mirror") for sid in self._sids]:
            self.pages[path], self.truth[path] = self.pages[log], "the-keepers-log"
        for section, which in _SECTIONS.items():
            body = self._writer(section).index("../articles/", slugs[which], 4)
            self._add(f"/{section}/", section, _title(section), body, mirror=True)
        others = ["/mirror/", "/staff/", "/articles/the-lost-chapter", "/private/accounts"]  # one is missing
        links = ", ".join(_link(path, _title(path.strip("/").rpartition("/")[2])) for path in others)
        body = self._writer("front").index("articles/", slugs, 2) + f"<p>Also here: {links}.</p>"
        self._add("/", "front", "Welcome to the light", body)
        self._add("/mirror/", "mirror", "A mirror", self._writer("mirror").index("articles/", slugs, 2))
        self._add("/private/accounts", "accounts", "Accounts", self._writer("accounts").text(_STORY, 36))

    def _look_alikes(self) -> None:
        for slug, own in _PRODUCTS.items():
            self._add("/shop/" + slug, slug, _title(slug), self._writer(slug, own).text(_GOODS, 42))
        self._add("/shop/", "shop", "The museum shop", self._writer("shop").index("", _PRODUCTS, 3))
        for slug, own in _STAFF.items():
            card = f"<!DOCTYPE html><title>{_title(slug)}</title><p>{_title(slug)} looks after our {own}."
            self.pages["/staff/" + slug] = Template(card + f" Visitor $counter. {_link('./', 'Staff')}")
            self.truth["/staff/" + slug] = slug
        self._add("/staff/", "staff", "Our staff", self._writer("staff").index("", _STAFF, 4))
        pages = " ".join(_link(f"/list?page={number}", str(number)) for number in range(1, 6))
        for number in range(1, 6):
            entries = "\n<li>".join(self._writer(f"list {number}").sentences(_ENTRIES, 40))
            body = f"<p>Pages: {pages}</p>\n<ul>\n<li>{entries}\n</ul>"
            for path in ["/list", "/list?page=1"] if number == 1 else [f"/list?page={number}"]:
                self._add(path, f"list {number}", "Catalogue", body)

    def _calendar(self) -> None:
        """Adds a page for each month of 20 years, all with the same programme; it links to its neighbours."""
        months = [datetime(2026 + month // 12, month % 12 + 1, 1) for month in range(_CALENDAR)]
        days = "\n<li>".join(self._writer("calendar").sentences(_STORY, 84))
        for at, month in enumerate(months):
            near = [("Previous", at - 1), ("Next", at + 1)]
            links = [_link(f"/calendar/{months[i]:%Y/%m}", text) for text, i in near if 0 <= i < _CALENDAR]
            body = f"<p>{month:%B %Y}: {' '.join(links)}</p>\n<ol>\n<li>{days}\n</ol>"
            self._add(f"/calendar/{month:%Y/%m}", "calendar", "What goes on", body)


@contextmanager
def serve(site: Site, port: int = 0) -> Iterator[str]:
    """Serves a site on loopback, in a thread, and yields its address; for port 0, at any free port."""
    visits = itertools.count(1)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 60  # seconds that a connection may be idle
        wbufsize = -1  # head and body in one write

        def do_GET(self) -> None:
            status, content_type, body = site.render(self.path, next(visits))
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Prints nothing."""

    class Server(ThreadingHTTPServer):
        request_queue_size = 128  # the default of 5 makes a crawler wait

    with Server(("127.0.0.1", port), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/"
        finally:
            server.shutdown()
