"""A site on loopback that answers by the path, the query, the form, the cookies and the host of a request."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

import scrapy

from tests.support.pages.everyday import text
from tests.support.serving import Answer, served

TYPES = {"xml": "text/xml", "json": "application/json", "csv": "text/csv", "txt": "text/plain"}


class Asked(NamedTuple):
    """A request."""

    path: str
    query: dict[str, str]
    form: dict[str, Any]  #: the fields of a form, or of JSON
    cookies: dict[str, str]
    headers: dict[str, str]  #: by names in lower case


class Reply(NamedTuple):
    """An answer that is more than a page."""

    body: str = ""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()


Page = str | Callable[[Asked], str | Reply]


class Site:
    """What a server answers: by path and query, or else by the path alone."""

    def __init__(self, port: int) -> None:
        self.url, self.other = f"http://127.0.0.1:{port}", f"http://localhost:{port}"
        self.pages: dict[str, Page] = {}

    def sitemap(self, paths: list[str]) -> str:
        """Has a sitemap of these paths; returns its URL."""
        places = "".join(f"<url><loc>{self.url}{path}</loc></url>" for path in paths)
        self.pages["/sitemap.xml"] = (
            f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{places}</urlset>'
        )
        return self.url + "/sitemap.xml"

    def reply(self, target: str, asked: Asked) -> Reply:
        page = self.pages.get(target) or self.pages.get(asked.path) or Reply("Not found", 404)
        found = page(asked) if callable(page) else page
        return found if isinstance(found, Reply) else Reply(found)


def links(*hrefs: str) -> str:
    return " ".join(f'<a href="{href}">More</a>' for href in hrefs)


def shell(title: str, body: str, *, head: str = "", marked: bool = False, menu: int = 150) -> str:
    """A page in the chrome of its site, which elements mark as such, or not."""
    top, bottom = ("<nav>", "</nav>") if marked else ("<div>", "</div>")
    entries = "".join(f"<li>{text(3, ('menu', at))}" for at in range(menu // 3))
    return (
        f"<!DOCTYPE html><html><head><title>{title}</title>{head}</head><body>{top}<ul>{entries}</ul>{bottom}"
        f"<div>{body}</div><div>{text(menu // 3, 'footer')}</div></body></html>"
    )


def one_from_each(site: Site, called: str, item: Callable[[Any], Any], css: str = "a") -> type[scrapy.Spider]:
    """Returns a spider that follows links of the front page, and makes one item of each of their pages."""

    class OneFromEach(scrapy.Spider):
        name = called
        start_urls = (site.url,)

        def parse(self, response: Any) -> Iterator[Any]:
            yield from response.follow_all(css=css, callback=self.parse_page)

        def parse_page(self, response: Any) -> Iterator[Any]:
            yield item(response)

    return OneFromEach


@contextmanager
def serving() -> Iterator[Site]:
    """A site, still without pages."""

    def answer(asked: BaseHTTPRequestHandler) -> Answer:
        url = urlsplit(asked.path)
        sent = asked.rfile.read(int(asked.headers.get("Content-Length", 0))).decode()
        cookies = SimpleCookie(asked.headers.get("Cookie", ""))
        question = Asked(
            url.path,
            dict(parse_qsl(url.query)),
            json.loads(sent) if sent.startswith("{") else dict(parse_qsl(sent)),
            {name: cookie.value for name, cookie in cookies.items()},
            {name.lower(): value for name, value in asked.headers.items()},
        )
        reply = site.reply(asked.path, question)
        kind = TYPES.get(url.path.rpartition(".")[2], "text/html")
        return reply.status, [("Content-Type", f"{kind}; charset=utf-8"), *reply.headers], reply.body.encode()

    with served(answer) as port:
        site = Site(port)
        yield site
