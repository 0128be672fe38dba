"""Scenes: generated sites with mirrors, releases, session ids, an endless calendar and other traps, by URL.

Each page says which content it shows, so that a crawl of a scene is judged by the truth.  Everything follows from the URL,
but for the ids that a server makes up at each answer.
"""

import random
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import md5
from typing import NamedTuple
from urllib.parse import parse_qsl, urljoin, urlsplit

SECTIONS, ARTICLES = 8, 25


class Shown(NamedTuple):
    """What a page shows, whatever its address is."""

    content: str  #: pages of one content are near-duplicates
    hrefs: list[str]
    short: bool = False  #: whether it has too few words to be judged


class ScenePage(NamedTuple):
    """A page of a scene."""

    url: str
    content: str
    hrefs: list[str]
    short: bool

    @property
    def links(self) -> list[str]:
        """Where its links lead, each once, in their order."""
        host = self.url[: self.url.index("/", len("https://"))]
        # Most are of this kind, and a simulation would spend half its time in urljoin.
        found = {
            f"{host}{href}" if href[:1] == "/" != href[1:2] else urljoin(self.url, href): None
            for href in self.hrefs
        }
        found.pop(self.url, None)
        return list(found)


def menu(prefix: str = "", suffix: str = "") -> list[str]:
    return [f"{prefix}/s{section}/{suffix}" for section in range(SECTIONS)]


def plain(
    path: str, prefix: str = "", suffix: str = "", more: Iterable[str] = (), articles: int = ARTICLES
) -> Shown | None:
    """The plain site: a front page, eight sections, 200 articles; ``prefix`` and ``suffix`` go to all of its links."""
    around = menu(prefix, suffix)
    if path == "/":
        return Shown("front", [*around, *more])
    match = re.fullmatch(r"/s(\d)/(?:a(\d+)\.html)?", path)
    if not match or int(match[1]) >= SECTIONS or int(match[2] or 0) >= articles:
        return None
    section, article = match.groups()
    if article is None:
        content, numbers = f"section{section}", list(range(articles))
    else:
        content = f"article{section}.{article}"
        numbers = [(int(article) * 7 + step * 3) % articles for step in (1, 2)]
    listed = [f"{prefix}/s{section}/a{number}.html{suffix}" for number in numbers]
    return Shown(content, [*around, *listed, *more])


@dataclass
class Scene:
    """A site; ``fetch`` gives the page at a URL, or None."""

    name: str
    endless: bool = False  #: whether a crawl that follows everything does not end
    fetches: int = 0

    @property
    def start(self) -> str:
        return f"http://{self.name}.test/"

    def fetch(self, url: str) -> ScenePage | None:
        self.fetches += 1
        found = self.show(url)
        return found and ScenePage(url, *found)

    def show(self, url: str) -> Shown | None:
        raise NotImplementedError


@dataclass
class Mirrors(Scene):
    """The site under other folders as a whole; its front pages link to each other, or (``cross``) each page to its twins."""

    mirrors: int = 1
    cross: bool = False
    hidden: bool = False  #: whether the third mirror has two more articles in each section, at its end

    def show(self, url: str) -> Shown | None:
        path = urlsplit(url).path
        match = re.match(r"/m(\d+)(?=/)", path)
        number, prefix = (int(match[1]), match[0]) if match else (0, "")
        if number > self.mirrors:
            return None
        rest = path.removeprefix(prefix)
        at = rest if self.cross else "/"
        twins = [f"/m{other}" * bool(other) + at for other in range(self.mirrors + 1) if other != number]
        if self.hidden and number == 3:
            if re.fullmatch(r"/s\d+/only\d+\.html", rest):
                return Shown(f"only{rest}", menu(prefix))
            if match := re.fullmatch(r"/s(\d+)/", rest):
                more = [f"{prefix}/s{match[1]}/only{n}.html" for n in (1, 2)]
                return plain(rest, prefix, more=[*more, *twins])
        return plain(rest, prefix, more=twins if self.cross or rest == "/" else ())


@dataclass
class Releases(Scene):
    """A manual in eight releases: in each a tenth of the articles has changed, and a few are new."""

    releases: int = 8
    changed: float = 0.1
    added: int = 5

    def show(self, url: str) -> Shown | None:
        path = urlsplit(url).path
        if path == "/":
            return Shown("releases", [f"/v{n}/" for n in range(1, self.releases + 1)])
        match = re.match(r"/v(\d+)(?=/)", path)
        if not match or not 0 < int(match[1]) <= self.releases:
            return None
        release, prefix, rest = int(match[1]), match[0], path[match.end() :]
        if match := re.fullmatch(r"/s\d+/new(\d+)\.html", rest):
            return None if int(match[1]) > release else Shown(f"new{rest}", menu(prefix))
        new = []
        if match := re.fullmatch(r"/s(\d+)/", rest):
            numbers = [n for n in range(1, release + 1) if n % SECTIONS == int(match[1]) or n < self.added]
            new = [f"{prefix}{rest}new{n}.html" for n in numbers]
        found = plain(rest, prefix, more=new)
        changes = [n for n in range(1, release + 1) if random.Random(f"{rest}{n}").random() < self.changed]
        if found and changes and rest.endswith(".html"):
            return Shown(f"{rest} of {changes[-1]}", found.hrefs)
        return found


@dataclass
class Sessions(Scene):
    """Every answer has a new id in all of its links: in a parameter, or (no name) in a folder."""

    parameter: str = "sid"
    articles: int = ARTICLES  #: in each section

    def show(self, url: str) -> Shown | None:
        ident = md5(f"{url}{self.fetches}".encode()).hexdigest()[:12]
        path = urlsplit(url).path
        if self.parameter:
            return plain(path, suffix=f"?{self.parameter}={ident}", articles=self.articles)
        path = re.sub(r"^/\(S\(\w+\)\)(?=/)", "", path)
        return plain(path, prefix=f"/(S({ident}))", articles=self.articles)


@dataclass
class Calendar(Scene):
    """An endless calendar beside the plain site; one month in fifty has an event with a page of its own."""

    def show(self, url: str) -> Shown | None:
        path = urlsplit(url).path
        if match := re.fullmatch(r"/event/\d+-\d+\.html", path):
            return Shown(path, menu())
        match = re.fullmatch(r"/cal/(\d+)/(\d+)/", path)
        if not match:
            return plain(path, more=["/cal/2026/11/"] if path == "/" else ())
        year, month = int(match[1]), int(match[2])

        def at(year: int, month: int) -> str:
            return f"/cal/{year + (month - 1) // 12}/{(month - 1) % 12 + 1}/"

        near = [at(year, month - 1), at(year, month + 1), at(year + 1, month), at(year - 1, month)]
        event = [f"/event/{year}-{month}.html"] if random.Random(path).random() < 0.02 else []
        return Shown("month", [*menu(), *near, *event])


@dataclass
class Missing(Scene):
    """Any wrong address gives a page "not found" with status 200 and links that are relative to it."""

    breadth: int = 1
    short: bool = False

    def show(self, url: str) -> Shown | None:
        path = urlsplit(url).path
        if len(path) > 2000:
            return None
        if found := plain(path, more=["/old/"] if path == "/" else ()):
            return found
        here = [f"more{number}/" for number in range(self.breadth)]
        return Shown("missing", here if self.short else [*menu(), *here], self.short)


@dataclass
class Forum(Scene):
    """Topics of three pages, with a link to each post, to the next and the previous topic, and a session id in each."""

    topics: int = 60
    pages: int = 3
    posts: int = 6

    def show(self, url: str) -> Shown | None:
        parts = urlsplit(url)
        query = dict(parse_qsl(parts.query))
        ident = "&s=" + (query.get("s") or md5(f"{self.fetches}".encode()).hexdigest()[:8])
        if parts.path == "/":
            return Shown("board", [f"/forum.php?f={f}{ident}" for f in range(4)])
        if parts.path == "/forum.php":
            forum, down = int(query.get("f", 0)), query.get("order") == "d"
            topics = sorted((topic for topic in range(self.topics) if topic % 4 == forum), reverse=down)
            links = [f"/topic.php?t={topic}{ident}" for topic in topics]
            return Shown(
                f"forum{forum}", links + [f"/forum.php?f={forum}&order={order}{ident}" for order in "ad"]
            )
        if parts.path != "/topic.php":
            return None
        start, topic = int(query.get("start", 0)), int(query.get("t", 0))
        if post := int(query.get("p", 0)):
            topic, start = post // 100, post % 100 // self.posts * self.posts
        topic += {"next": 4, "previous": -4}.get(query.get("view", ""), 0)
        if not 0 <= topic < self.topics:
            return None
        links = [
            *(f"p={topic * 100 + n}" for n in range(start, min(start + self.posts, self.pages * self.posts))),
            *(f"t={topic}&start={n * self.posts}" for n in range(self.pages)),
            *(f"t={topic}&view={view}" for view in ("next", "previous", "print")),
        ]
        up = f"/forum.php?f={topic % 4}{ident}"
        return Shown(f"topic{topic} from {start}", [*(f"/topic.php?{link}{ident}" for link in links), up])


@dataclass
class Lists(Scene):
    """A row of lists that are near-duplicates, each with a link to one article and to the next list."""

    lists: int = 200

    def show(self, url: str) -> Shown | None:
        path = urlsplit(url).path
        if path == "/":
            return Shown("front", ["/list/0"])
        match = re.fullmatch(r"/(list|article)/(\d+)", path)
        number = int(match[2]) if match else self.lists
        if not match or number >= self.lists:
            return None
        if match[1] == "article":
            return Shown(f"article {number}", ["/"])
        return Shown("list", [f"/article/{number}", f"/list/{number + 1}"])


#: By name, made anew for each crawl.
SCENES: dict[str, Callable[[], Scene]] = {
    "mirrors5": lambda: Mirrors("mirrors5", mirrors=5, cross=True),
    "hidden": lambda: Mirrors("hidden", mirrors=4, hidden=True),
    "versions": lambda: Releases("versions"),
    "session": lambda: Sessions("session", endless=True),
    "sessionpath": lambda: Sessions("sessionpath", endless=True, parameter=""),
    "forum": lambda: Forum("forum"),
    "lists": lambda: Lists("lists"),
    "calendar": lambda: Calendar("calendar", endless=True),
    "soft404x10": lambda: Missing("soft404x10", endless=True, breadth=10),
    "soft404short": lambda: Missing("soft404short", endless=True, breadth=2, short=True),
}
