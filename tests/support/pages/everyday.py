"""Kinds of everyday page, whose contents differ in little: a name, a number, a row, a paragraph.

Each kind makes the n-th of its contents: a title, and what stands between the chrome of its site.  No two contents of a
kind are the same, and what a kind shares (a frame, a table of labels, a notice) is the same on all its pages.
"""

import json
import random
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from tests.support.pages.prose import Prose

#: Chinese, as each character is a token; a made-up text of these looks like a notice.
HAN = "的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主发年动同工也能下过子说产种面而方后多定行学法所民得经"
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
Maker = Callable[[int, random.Random], "Content"]


class Content(NamedTuple):
    """What one page of a kind shows."""

    title: str
    body: str
    head: str = ""  #: what is added to its head


@cache
def _prose() -> Prose:
    return Prose(random.Random(2026))


def text(count: int, seed: object) -> str:
    """The same words for the same seed."""
    return _text(count, str(seed))


@lru_cache(1 << 16)  # a menu is on each page of a site, and a site is crawled several times
def _text(count: int, seed: str) -> str:
    prose = _prose()
    prose.rng = random.Random(seed)
    return prose.text(count)


def name(number: int, seed: object = "") -> str:
    """A name of two words, which no other number has."""
    rng = random.Random(f"{seed} name {number}")
    made = [
        "".join(
            rng.choices(["ka", "lo", "mi", "ter", "sun", "ve", "ra", "pol", "den", "ish", "or", "ga"], k=3)
        )
        for _ in range(2)
    ]
    return (
        f"{made[0].capitalize()} {made[1].capitalize()}{'abcdefghij'[number % 10]}{'klmno'[number // 10 % 5]}"
    )


def rows(pairs: Sequence[tuple[str, object]]) -> str:
    return "<table>" + "".join(f"<tr><th>{label}<td>{value}" for label, value in pairs) + "</table>"


def code(number: int, rng: random.Random) -> str:
    return f"{rng.randrange(10, 99)}-{number:03d}-{rng.randrange(1000, 9999)}"


def labelled(title: str, labels: str, frame: int) -> Maker:
    """A form of labels with a value each that is a number of the content."""

    def make(number: int, rng: random.Random) -> Content:
        values = [(label, code(number, rng)) for label in labels.split()]
        return Content(title, rows(values) + f"<p>{text(frame, title)}</p>")

    return make


def named(title: str, frame: int, own: int) -> Maker:
    """A name and a few words in a frame; the title is that of the section."""

    def make(number: int, rng: random.Random) -> Content:
        own_text = text(own, (title, number)) if own else ""
        return Content(title, f"<h2>{name(number, title)}</h2><p>{own_text}</p><p>{text(frame, title)}</p>")

    return make


def titled(section: str, frame: int, own: int) -> Maker:
    """The same with a title of its own."""

    def make(number: int, rng: random.Random) -> Content:
        called = name(number, section)
        return Content(
            f"{called} - {section}", f"<p>{text(own, (section, number))}</p><p>{text(frame, section)}</p>"
        )

    return make


def grouped(title: str, size: int, shared: int, own: int) -> Maker:
    """Groups of a few contents that share a long text, such as the rooms of one hotel."""

    def make(number: int, rng: random.Random) -> Content:
        group = number // size
        body = f"<p>{text(shared, (title, 'group', group))}</p><p>{text(own, (title, number))}</p>"
        return Content(f"{name(group, title)}", body)

    return make


def edited(title: str, long: int, changed: int) -> Maker:
    """Versions of one long text, each with a few other words: a law as it was amended."""

    def make(number: int, rng: random.Random) -> Content:
        words = text(long, (title, number // 4)).split()
        at = 40 + 60 * (number % 4)
        words[at : at + changed] = text(changed, (title, "edit", number)).split()
        return Content(f"{title}", f"<p>{' '.join(words)}</p>")

    return make


def dated(title: str, frame: int) -> Maker:
    """A day, and what goes with it."""

    def make(number: int, rng: random.Random) -> Content:
        day = f"{DAYS[number % 7]}, {1 + number % 28} {['March', 'April'][number // 28]} 2026"
        return Content(
            title, f"<h2>{title}</h2><p>{day}, {9 + number % 9} o'clock</p><p>{text(frame, title)}</p>"
        )

    return make


def listed(title: str, entries: int, new: float) -> Maker:
    """A list of which a share is its own, and the others are the same everywhere."""

    def make(number: int, rng: random.Random) -> Content:
        items = [text(6, (title, "item", at, number if at < entries * new else "")) for at in range(entries)]
        rng.shuffle(items)
        links = "".join(f"<li><a href='/item/{abs(hash_of(item))}'>{item}</a>" for item in items)
        return Content(title, f"<ul>{links}</ul>")

    return make


def hash_of(words: str) -> int:
    return sum(ord(letter) * (at + 1) ** 2 for at, letter in enumerate(words))


def pictured(title: str, count: int, own_words: int) -> Maker:
    """Images, of which a page shows some of its own."""

    def make(number: int, rng: random.Random) -> Content:
        images = "".join(
            f'<img src="/img/{number * count + at:05d}{name(number).split()[0]}.jpg">' for at in range(count)
        )
        return Content(
            title,
            f"{images}<p>{text(own_words, (title, number)) if own_words else ''}</p><p>{text(30, title)}</p>",
        )

    return make


def linked(title: str, count: int) -> Maker:
    """The same words around links that differ."""

    def make(number: int, rng: random.Random) -> Content:
        links = "".join(
            f'<a href="/files/{name(number).replace(" ", "")}/{at}.zip">Download</a> ' for at in range(count)
        )
        return Content(title, f"<p>{text(60, title)}</p>{links}")

    return make


def han(title: str, frame: int, own: int) -> Maker:
    def make(number: int, rng: random.Random) -> Content:
        shared, mine = random.Random(title), random.Random(f"{title} {number}")
        body = "".join(shared.choices(HAN, k=frame)) + "。" + "".join(mine.choices(HAN, k=own))
        return Content("通知", f"<p>{body}</p>")

    return make


def verses(title: str, lines: int, own: int) -> Maker:
    """A song with a refrain."""

    def make(number: int, rng: random.Random) -> Content:
        verse = "<br>".join(text(7, (title, number, line)) for line in range(own))
        refrain = "<br>".join(text(7, (title, number // 5, "refrain", line)) for line in range(lines))
        return Content(f"{title} {name(number // 5)}", f"<p>{refrain}</p><p>{verse}</p><p>{refrain}</p>")

    return make


def data(title: str, kind: str) -> Maker:
    """A shell, with the content in a script or in linked data."""

    def make(number: int, rng: random.Random) -> Content:
        record = {
            "name": name(number, title),
            "description": text(25, (title, number)),
            "sku": f"A{number}",
            "price": 9 + number,
        }
        script = f'<script type="{kind}">{json.dumps(record)}</script>'
        return Content(title, f"<p>{text(50, title)}</p>", script)

    return make


def table(title: str, lines: int, own: int) -> Maker:
    """A table of which some lines are its own."""

    def make(number: int, rng: random.Random) -> Content:
        lines_of = [
            f"<tr><td>{text(3, (title, line))}<td>{1000 + 37 * line + (number * 101 if line < own else 0)}"
            for line in range(lines)
        ]
        return Content(title, f"<table>{''.join(lines_of)}</table>")

    return make


def product(title: str, options: str, shared: int) -> Maker:
    """Variants of a product: a colour, a size."""

    def make(number: int, rng: random.Random) -> Content:
        words = options.split()
        option = words[number % len(words)]
        base = number // len(words)
        body = f"<p>{option} {17 * base + 5 * number} EUR</p><p>{text(shared, (title, base))}</p>"
        return Content(f"{name(base, title)} {option}", body)

    return make


KINDS: dict[str, Maker] = {
    "register of companies": labelled("Register entry", "Number Court Registered Capital", 60),
    "register of patents": labelled("Patent", "Application Filed Granted Class Holder", 40),
    "land register": labelled("Parcel", "Lot Block Area", 120),
    "weather station": labelled("Measurements", "Wind Rain Pressure Humidity Sun Snow", 30),
    "stock quote": labelled("Quote", "Open High Low Close Volume ISIN", 50),
    "exchange rate": labelled("Reference rate", "Dollar Pound Yen", 80),
    "part by number": labelled("Spare part", "Article Thread Length", 60),
    "lottery": labelled("Draw", "First Second Third Bonus", 70),
    "tender": labelled("Notice", "Reference Deadline Value", 250),
    "form letters": labelled("Official Opinion", "Opinion Docket", 400),
    "bus line": labelled("Timetable", "Leaves Arrives Platform", 90),
    "meter reading": labelled("Reading", "Meter", 20), "staff": named("Staff", 30, 0),
    "staff with a line": named("Our team", 40, 10), "members of a forum": named("View profile", 12, 3),
    "branches": named("Branch", 70, 6), "store locator": named("Store", 40, 8),
    "doctors": named("Practice", 100, 15), "quotes": named("Quote of the day", 10, 14),
    "jokes": named("Joke", 0, 9), "proverbs": named("Proverb", 25, 8),
    "exhibits": named("Collection", 50, 20), "graves": named("Memorial", 90, 4),
    "courses": named("Course catalogue", 150, 25), "court orders": named("Order", 450, 30),
    "press in a frame": named("Press release", 300, 150), "recipes in a frame": named("Recipe", 200, 80),
    "issue tracker": named("Issue", 20, 16), "questions of a quiz": named("Question", 30, 12),
    "dictionary": titled("Dictionary", 20, 12), "cities": titled("City guide", 80, 20),
    "persons": titled("People", 60, 30), "real estate": titled("For rent", 100, 40),
    "short news": titled("News in brief", 0, 40), "news": titled("News", 0, 200),
    "reviews": titled("Reviews", 60, 60), "rooms of a hotel": grouped("Rooms", 4, 230, 22),
    "jobs of an employer": grouped("Jobs", 3, 250, 25), "cars of a model": grouped("Used cars", 5, 90, 10),
    "concerts of a tour": grouped("Concerts", 6, 120, 12), "flats of a house": grouped("Flats", 7, 150, 14),
    "matches of two teams": grouped("Match report", 3, 60, 15),
    "editions of a book": grouped("Editions", 2, 300, 12), "law as amended": edited("Act", 1500, 9),
    "terms by date": edited("Terms of service", 700, 12), "contracts": edited("Model contract", 400, 6),
    "minutes": edited("Standing orders", 300, 20), "events every week": dated("Parents' evening", 120),
    "calendar": dated("Calendar", 15), "services": dated("Service", 60),
    "closed days": dated("Opening hours", 40), "lists, a fifth new": listed("Results", 20, 0.2),
    "lists, a tenth new": listed("Archive", 30, 0.1), "lists of two": listed("Category", 2, 0.5),
    "lists of ten": listed("Latest", 10, 0.5), "gallery, one image": pictured("Gallery", 1, 0),
    "gallery, six images": pictured("Photos", 6, 0), "gallery with captions": pictured("Pictures", 2, 8),
    "downloads": linked("Download", 1), "release files": linked("Release files", 5),
    "notices, Chinese": han("notice", 200, 20), "articles, Chinese": han("article", 60, 200),
    "verses": verses("Song", 4, 4), "hymns": verses("Hymn", 6, 2),
    "product, colours": product("Lamp", "red green blue black white", 130),
    "product, sizes": product("Screw", "M3 M4 M5 M6 M8 M10 M12 M16", 90),
    "product, models": product("Drill", "basic plus pro max", 260),
    "linked data": data("Shop item", "application/ld+json"),
    "state of an app": data("Application", "application/json"), "statistics": table("Population", 30, 3),
    "tariffs": table("Tariff", 12, 2), "season": table("Season", 20, 10),
}  # fmt: skip
