"""A site on loopback that answers by the path, the query, the form, the cookies and the host of a request."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from tests.support.pages.everyday import text

__all__ = ["Asked", "Reply", "Site", "links", "serving", "shell"]

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


@contextmanager
def serving() -> Iterator[Site]:
    """A site, still without pages."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 30
        wbufsize = -1  # head and body in one write

        def do_GET(self) -> None:
            url = urlsplit(self.path)
            sent = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            cookies = SimpleCookie(self.headers.get("Cookie", ""))
            asked = Asked(
                url.path,
                dict(parse_qsl(url.query)),
                json.loads(sent) if sent.startswith("{") else dict(parse_qsl(sent)),
                {name: cookie.value for name, cookie in cookies.items()},
                {name.lower(): value for name, value in self.headers.items()},
            )
            reply = site.reply(self.path, asked)
            body = reply.body.encode()
            self.send_response(reply.status)
            kind = TYPES.get(url.path.rpartition(".")[2], "text/html")
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            for name, value in reply.headers:
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, format: str, *args: object) -> None:
            """Logs nothing."""

    class Server(ThreadingHTTPServer):
        request_queue_size = 64
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        site = Site(server.server_address[1])
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield site
        finally:
            server.shutdown()
            thread.join()
