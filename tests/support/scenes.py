"""Scenes: generated sites with mirrors, releases, session ids, endless calendars and other traps, by URL.

Each page says which content it shows, so a crawl of a scene can be judged by the truth, without a fingerprint; or by
its HTML, with one.  Everything is made from the URL alone, but for the ids that a server makes up at each answer.
"""

import random
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from hashlib import md5
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

SECTIONS, ARTICLES, WIKI_ARTICLES = 8, 25, 12

Anchor = tuple[str, str]  # the href, and the words of a link
_SYLLABLES = ["ka", "lo", "mi", "ter", "sun", "ve", "ra", "pol", "den", "ish", "or", "ga"]
WORDS = [
    "".join(random.Random(number).choice(_SYLLABLES) for _ in range(2 + number % 3)) for number in range(4000)
]


@cache
def prose(seed: str, count: int) -> str:
    """Writes so many words; no two seeds give texts that resemble each other."""
    rng = random.Random(seed)
    words = []
    for number in range(count):
        common = min(int(rng.paretovariate(0.6)) - 1, 3999)
        word = WORDS[common if rng.random() < 0.3 else rng.randrange(4000)]
        words.append(word + "." * (number % 13 == 12))
    return " ".join(words)


class ScenePage(NamedTuple):
    """A page of a scene."""

    url: str
    content: str  #: what it shows: pages of one content are near-duplicates
    title: str
    text: Callable[[], str]
    anchors: list[Anchor]
    short: bool = False  #: whether it has too few words to be judged

    @property
    def html(self) -> str:
        links = "".join(f'<li><a href="{href}">{words}</a></li>' for href, words in self.anchors)
        head = f"<html><head><title>{self.title}</title></head><body><h1>{self.title}</h1>"
        return f"{head}<p>{self.text()}</p><ul>{links}</ul></body></html>"

    @property
    def links(self) -> list[str]:
        """Where its links lead, each once, in their order."""
        host = self.url[: self.url.index("/", len("https://"))]
        hrefs = (href.partition("#")[0] for href, _ in self.anchors)
        # Most are of this kind, and a simulation would spend half its time in urljoin.
        found = {
            f"{host}{href}" if href[:1] == "/" != href[1:2] else urljoin(self.url, href): None
            for href in hrefs
        }
        found.pop(self.url, None)
        return list(found)


class Shown(NamedTuple):
    """What a page shows, whatever its address is."""

    content: str
    title: str
    text: Callable[[], str]
    anchors: list[Anchor]
    short: bool = False


def shown(content: str, title: str, words: int, anchors: list[Anchor], more: str = "") -> Shown:
    """What a page shows whose text follows from its content."""
    return Shown(content, title, lambda: f"{prose(content, words)} {more}".strip(), anchors)


def menu(prefix: str = "", suffix: str = "") -> list[Anchor]:
    return [(f"{prefix}/s{s}/{suffix}", f"Section {WORDS[s * 7]}") for s in range(SECTIONS)]


def plain(
    path: str, prefix: str = "", suffix: str = "", more: Iterable[Anchor] = (), articles: int = ARTICLES
) -> Shown | None:
    """The plain site: a front page, eight sections, 200 articles; ``prefix`` and ``suffix`` go to all of its links."""
    if path == "/":
        return shown("front", "Welcome", 120, [*menu(prefix, suffix), *more])
    if match := re.fullmatch(r"/s(\d)/(?:a(\d+)\.html)?", path):
        section, article = int(match[1]), match[2]
        if section >= SECTIONS or (article and int(article) >= articles):
            return None

        def to(number: int, words: str) -> Anchor:
            return f"{prefix}/s{section}/a{number}.html{suffix}", words

        if article is None:
            listed = [to(number, prose(f"title{section}.{number}", 4)) for number in range(articles)]
            name = f"Section {section}"
            return shown(f"section{section}", name, 80, [*menu(prefix, suffix), *listed, *more])
        number = int(article)
        near = [(number * 7 + step * 3) % articles for step in (1, 2)]
        others = [to(other, f"See {prose(f'title{section}.{other}', 3)}") for other in near]
        title, words = prose(f"title{section}.{number}", 4), 150 + (section * 31 + number * 17) % 300
        return shown(f"article{section}.{number}", title, words, [*menu(prefix, suffix), *others, *more])
    return None


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
        return plain(urlsplit(url).path)


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
        others = [other for other in range(self.mirrors + 1) if other != number]
        at = rest if self.cross else "/"
        twins = [(f"/m{other}" * bool(other) + at, f"Mirror {other}") for other in others]
        if self.hidden and number == 3:
            if re.fullmatch(r"/s\d+/only\d+\.html", rest):
                return shown(f"only{rest}", "Only here", 200, menu(prefix))
            if match := re.fullmatch(r"/s(\d+)/", rest):
                more = [(f"{prefix}/s{match[1]}/only{n}.html", f"New {n}") for n in (1, 2)]
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
            links = [(f"/v{n}/", f"Release {n}") for n in range(1, self.releases + 1)]
            return shown("releases", "Documentation", 60, links)
        match = re.match(r"/v(\d+)(?=/)", path)
        if not match or not 0 < int(match[1]) <= self.releases:
            return None
        release, prefix, rest = int(match[1]), match[0], path[match.end() :]
        if match := re.fullmatch(r"/s\d+/new(\d+)\.html", rest):
            if int(match[1]) > release:
                return None
            return shown(f"new{rest}", f"New in {match[1]}", 200, menu(prefix))
        new = []
        if match := re.fullmatch(r"/s(\d+)/", rest):
            numbers = [n for n in range(1, release + 1) if n % SECTIONS == int(match[1]) or n < self.added]
            new = [(f"{prefix}{rest}new{n}.html", f"New {n}") for n in numbers]
        found = plain(rest, prefix, more=new)
        changes = [n for n in range(1, release + 1) if random.Random(f"{rest}{n}").random() < self.changed]
        if found and changes and rest.endswith(".html"):
            return shown(f"{rest} of {changes[-1]}", found.title, 200, found.anchors)
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
        return plain(
            re.sub(r"^/\(S\(\w+\)\)(?=/)", "", path), prefix=f"/(S({ident}))", articles=self.articles
        )


@dataclass
class Printer(Scene):
    """Of every article there is a page to be printed, in a folder and by a parameter, and two links with parameters more."""

    def show(self, url: str) -> Shown | None:
        parts = urlsplit(url)
        path = parts.path.removeprefix("/print")
        found = plain(path)
        if found is None or not path.endswith(".html"):
            return found
        if path != parts.path or "print=1" in parts.query:
            return found._replace(anchors=[*found.anchors[-2:], (path, "Back")])
        more = {
            "/print" + path: "Print",
            path + "?print=1": "Printer friendly",
            path + "?utm_source=x": "Share",
            path + "?highlight=" + WORDS[len(path)]: "Highlight",
        }
        return found._replace(anchors=[*found.anchors, *more.items()])


@dataclass
class Facets(Scene):
    """A shop: 240 items in eight categories, whose lists can be sorted, shown and narrowed in any combination."""

    items: int = 240

    def show(self, url: str) -> Shown | None:
        parts = urlsplit(url)
        path, query = parts.path, dict(parse_qsl(parts.query))
        if path == "/":
            return shown("shop", "Shop", 100, [(f"/c{c}/", f"Category {c}") for c in range(8)])
        if match := re.fullmatch(r"/item(\d+)", path):
            number = int(match[1])
            if number >= self.items:
                return None
            return shown(f"item{number}", f"Item {number}", 150, [(f"/c{number % 8}/", "Category")])
        match = re.fullmatch(r"/c([0-7])/((?:[a-z]+-\w+/)*)", path)
        if not match:
            return None
        category, chosen = int(match[1]), {facet.partition("-")[0] for facet in match[2].split("/") if facet}
        items = [number for number in range(self.items) if number % 8 == category]
        items = items[1 if "sale" in chosen else 0 : -1 if "stock" in chosen else None]
        if query.get("sort") == "price":
            items.sort(key=lambda number: md5(str(number).encode()).digest())
        if query.get("sort") == "name":
            items.sort(key=str)

        links = [(f"/item{number}", prose(f"item{number}", 14)) for number in items]
        for name, values in {
            "sort": ("price", "name"),
            "view": ("grid", "list"),
            "size": ("30", "60", "90"),
        }.items():
            links += [("?" + urlencode(query | {name: value}), f"{name} {value}") for value in values]
        facets = {"stock": "yes", "sale": "no", "ship": "all", "brand": "any"}
        links += [(f"{path}{k}-{v}/", f"Only {k}") for k, v in facets.items() if k not in chosen]
        return shown(f"category{category}", f"Category {category}", 40, links)


@dataclass
class Calendar(Scene):
    """An endless calendar beside the plain site; one month in fifty has an event with a page of its own."""

    words: str = " ".join(f"{day} nothing on this day" for day in range(1, 31))

    def show(self, url: str) -> Shown | None:
        path = urlsplit(url).path
        if match := re.fullmatch(r"/event/\d+-\d+\.html", path):
            return shown(path, "Event", 150, menu())
        match = re.fullmatch(r"/cal/(\d+)/(\d+)/", path)
        if not match:
            return plain(path, more=[("/cal/2026/11/", "Calendar")] if path == "/" else ())
        year, month = int(match[1]), int(match[2])

        def at(year: int, month: int) -> str:
            return f"/cal/{year + (month - 1) // 12}/{(month - 1) % 12 + 1}/"

        near = {
            "Back": (year, month - 1),
            "On": (year, month + 1),
            "Year on": (year + 1, month),
            "Year back": (year - 1, month),
        }
        links = [(at(*when), words) for words, when in near.items()]
        if random.Random(path).random() < 0.02:
            links.append((f"/event/{year}-{month}.html", "Event"))
        text = f"Opening hours and events of the museum {self.words}"
        return Shown("month", f"{WORDS[month]} {year}", lambda: text, menu() + links)


@dataclass
class Clicked(Scene):
    """Links carry where they were clicked: ?from=PAGE."""

    def show(self, url: str) -> Shown | None:
        path = urlsplit(url).path
        return plain(path, suffix="?from=" + (re.sub(r"\W", "", path) or "front"))


@dataclass
class Missing(Scene):
    """Any wrong address gives a page "not found" with status 200 and links that are relative to it."""

    breadth: int = 1
    short: bool = False  #: whether the page has too few words to be judged

    def show(self, url: str) -> Shown | None:
        path = urlsplit(url).path
        if len(path) > 2000:
            return None
        if found := plain(path, more=[("/old/", "Archive")] if path == "/" else ()):
            return found
        links = [(f"{WORDS[number]}/", WORDS[number]) for number in range(self.breadth)]
        if self.short:
            return Shown("missing", "Not found", lambda: "Sorry, nothing here", links, short=True)
        return shown(
            "missing", "Not found", 60, menu() + links, "Sorry, this page could not be found on our server"
        )


@dataclass
class CatchAll(Scene):
    """Every address in some folders gives one text with 20 addresses made up, in folders made up."""

    def show(self, url: str) -> Shown | None:
        path = urlsplit(url).path
        if not path.startswith("/x"):
            return plain(path, more=[("/x0/", "More")] if path == "/" else ())
        rng = random.Random(url)

        def made_up() -> str:
            return f"/x{rng.randrange(10**6)}/{rng.randrange(10**6)}/{rng.choice(WORDS)}.html"

        return shown("everything", "All we have", 500, [(made_up(), WORDS[number]) for number in range(20)])


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
            return shown("board", "Board", 60, [(f"/forum.php?f={f}{ident}", f"Forum {f}") for f in range(4)])
        if parts.path == "/forum.php":
            forum, down = int(query.get("f", 0)), query.get("order") == "d"
            topics = sorted((topic for topic in range(self.topics) if topic % 4 == forum), reverse=down)
            links = [(f"/topic.php?t={topic}{ident}", prose(f"topic{topic}", 12)) for topic in topics]
            links += [(f"/forum.php?f={forum}&order={order}{ident}", order) for order in "ad"]
            return shown(f"forum{forum}", f"Forum {forum}", 40, links)
        if parts.path != "/topic.php":
            return None
        start, topic = int(query.get("start", 0)), int(query.get("t", 0))
        if post := int(query.get("p", 0)):
            topic, start = post // 100, post % 100 // self.posts * self.posts
        topic += {"next": 4, "previous": -4}.get(query.get("view", ""), 0)
        if not 0 <= topic < self.topics:
            return None
        posts = range(start, min(start + self.posts, self.pages * self.posts))
        links = [(f"/topic.php?p={topic * 100 + number}{ident}", f"Post {number}") for number in posts]
        links += [
            (f"/topic.php?t={topic}&start={n * self.posts}{ident}", f"Page {n}") for n in range(self.pages)
        ]
        links += [
            (f"/topic.php?t={topic}&view={view}{ident}", view) for view in ("next", "previous", "print")
        ]
        links.append((f"/forum.php?f={topic % 4}{ident}", "Up"))

        def text() -> str:
            return " ".join(prose(f"post{topic}.{number}", 60) for number in posts)

        return Shown(f"topic{topic} from {start}", f"Topic {topic}", text, links)


@dataclass
class Wiki(Scene):
    """Articles with a history of twelve revisions that are nearly alike, and a page to be printed."""

    def show(self, url: str) -> Shown | None:
        parts = urlsplit(url)
        if parts.path != "/w":
            found = plain(parts.path, articles=WIKI_ARTICLES)
            if found is None or not parts.path.endswith(".html"):
                return found
            script = f"/w?title={parts.path}"
            more = [(f"{script}&action=history", "History"), (f"{script}&printable=yes", "Print")]
            return found._replace(anchors=[*found.anchors, *more])
        query = dict(parse_qsl(parts.query))
        title = query.get("title", "")
        found, script = plain(title, articles=WIKI_ARTICLES), f"/w?title={title}"
        if found is None:
            return None
        if query.get("action") == "history":
            links = [(f"{script}&oldid={n}", f"Revision {n} {prose(f'{title}{n}', 5)}") for n in range(12)]
            return shown(f"history{title}", f"History of {found.title}", 30, links)
        if "oldid" not in query:
            return found
        words, links = found.text, [*found.anchors, (f"{script}&action=history", "History")]
        return found._replace(text=lambda: f"{words()} revision {query['oldid']}", anchors=links)


@dataclass
class Hosts(Scene):
    """One site on five hosts that link to each other from every page."""

    hosts: int = 5

    def show(self, url: str) -> Shown | None:
        path = urlsplit(url).path
        return plain(
            path, more=[(f"http://h{n}.{self.name}.test{path}", f"On host {n}") for n in range(self.hosts)]
        )


#: By name, made anew for each crawl.
SCENES: dict[str, Callable[[], Scene]] = {
    "mirror": lambda: Mirrors("mirror"),
    "mirrors5": lambda: Mirrors("mirrors5", mirrors=5, cross=True),
    "hidden": lambda: Mirrors("hidden", mirrors=4, hidden=True),
    "hosts": lambda: Hosts("hosts"),
    "versions": lambda: Releases("versions"),
    "session": lambda: Sessions("session", endless=True),
    "token": lambda: Sessions("token", endless=True, parameter="tok"),
    "sessionpath": lambda: Sessions("sessionpath", endless=True, parameter=""),
    "from": lambda: Clicked("from"),
    "printer": lambda: Printer("printer"),
    "wiki": lambda: Wiki("wiki"),
    "forum": lambda: Forum("forum"),
    "facets": lambda: Facets("facets", endless=True),
    "calendar": lambda: Calendar("calendar", endless=True),
    "soft404": lambda: Missing("soft404"),
    "soft404x10": lambda: Missing("soft404x10", endless=True, breadth=10),
    "soft404short": lambda: Missing("soft404short", endless=True, breadth=2, short=True),
    "catchall": lambda: CatchAll("catchall", endless=True),
}
