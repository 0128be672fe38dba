"""The site of a trial: what it answers depends on its spec alone, and on how often a page was asked for."""

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from itertools import count
from urllib.parse import parse_qsl, urlsplit
from zlib import crc32

from tests.chaos.spec import Spec
from tests.support.serving import Answer, served

BEFORE = {"print": "/print", "mirror": "/mirror", "query": ""}
#: Of two shards, these are of the first, the second, the first and the second.
HOSTS = "127.0.0.1", "127.0.0.3", "127.0.0.2", "127.0.0.4"


def share(spec: Spec, salt: str, url: str) -> float:
    """A number from 0 to 1 that depends on a page's address, less the session; the front page never fails."""
    parts = urlsplit(url)
    query = "&".join(part for part in parts.query.split("&") if not part.startswith("sid="))
    plain = f"{spec.seed} {salt} {parts.path}?{query}"
    return 1.0 if parts.path == "/" else crc32(plain.encode()) / 2**32


class Site:
    """Contents that are linked with each other, each under some addresses; pages of hours and contacts for each, all alike.

    Of several hosts, each has some contents.  ``later``: what changes has changed.
    """

    def __init__(self, spec: Spec, *, later: bool = False) -> None:
        self.spec, self.later = spec, later
        rng = random.Random(f"site {spec.seed}")
        words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(3, 9))) for _ in range(4000)]
        self._texts = [" ".join(rng.choices(words, k=spec.words)) for _ in range(spec.contents)]
        self.titles = [" ".join(rng.choices(words, k=4)) for _ in range(spec.contents)]
        self._chrome = " ".join(rng.choices(words, k=spec.chrome))
        self._alike = {name: " ".join(rng.choices(words, k=80)) for name in ("hours", "contact")}
        everything = range(spec.contents)
        self._links = [{(2 * n + 1), (2 * n + 2), *rng.sample(everything, 3)} for n in everything]
        self._others = [" ".join(rng.choices(words, k=spec.words)) for _ in everything]
        self._changed = {n for n in everything if n and rng.random() < spec.changes}
        self._asked: Counter[str] = Counter()
        self.port = 0

    def render(self, path: str, visit: int) -> tuple[int, str]:
        """The answer to a request."""
        self._asked[path] += 1
        if share(self.spec, "error", path) < self.spec.errors and self._asked[path] == 1:
            return 500, "sorry"
        parts = urlsplit(path)
        query = dict(parse_qsl(parts.query))
        sid = f"sid={query['sid']}" if "sid" in query else ""
        if self.spec.sessions and not sid:
            sid = f"sid={crc32(f'{visit}'.encode()):08x}"
        folder, _, name = parts.path.rpartition("/")
        alike = self._alike.get(name)
        name = query.get("of", "") if alike else name or "0"
        if not name.isdigit() or int(name) >= self.spec.contents:
            return 404, "nothing"
        number = int(name)
        if alike:
            body = f"<title>{alike.partition(' ')[0]}</title><p>{alike}{self._link('/contact', sid, number)}"
        elif self.later and number in self._changed and number % 2 and folder == query.get("view", ""):
            return 404, "gone"  # but the copies are there
        else:
            body = self._page(number, sid)
        counter = f"<p>visit {visit}" if self.spec.counter else ""
        return 200, f"{body}<footer>{self._chrome}</footer>{counter}"

    def addresses(self, number: int) -> list[str]:
        """Where a page is, on its host."""
        queries = [("", ""), *((BEFORE[copy], "?view=1" * (copy == "query")) for copy in self.spec.copies)]
        return [f"{before}/{number}{query}" for before, query in queries]

    def url(self, path: str, number: int) -> str:
        """The URL of an address of a page; without its host if there is but one."""
        host = HOSTS[number % self.spec.hosts]
        return f"http://{host}:{self.port}{path}" if self.spec.hosts > 1 else path

    def _page(self, number: int, sid: str) -> str:
        others = [other for other in sorted(self._links[number]) if other < self.spec.contents]
        links = [self._link(path, sid, other) for other in others for path in self.addresses(other)]
        is_new = self.later and number in self._changed
        text = (self._others if is_new else self._texts)[number]
        body = f"<title>{self.titles[number]}</title><main id=c{number}{'v2' * is_new}>{text}</main>"
        return f"{body}{''.join(links)}{self._link(f'/hours?of={number}', sid, number)}"

    def _link(self, path: str, sid: str, number: int) -> str:
        path += f"?of={number}" * (path == "/contact")
        joint = ("&amp;" if "?" in path else "?") * bool(sid)
        return f'<a href="{self.url(path, number)}{joint}{sid}">more</a> '


@contextmanager
def serve(site: Site) -> Iterator[str]:
    """Serves a site on all of its hosts, and yields the address of its front page."""
    visits = count(1)

    def answer(asked: BaseHTTPRequestHandler) -> Answer:
        status, text = site.render(asked.path, next(visits))
        return status, [("Content-Type", "text/html")], text.encode()

    with served(answer, "0.0.0.0") as site.port:
        yield f"http://{HOSTS[0]}:{site.port}/"
