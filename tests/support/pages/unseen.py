"""Kinds of page on which no constant of the verdict was chosen: made after it, to try it.

As in `tests.support.pages.everyday`, a kind makes the n-th of its contents.
"""

import random
from collections.abc import Iterable

from tests.support.pages.everyday import DAYS, Content, Maker, code, name, rows, text


def spread(words: int, own: str, seed: object) -> str:
    """A long text, with a few words of its own in the middle."""
    said = text(words, seed).split()
    return f"<p>{' '.join(said[: words // 2])} {own} {' '.join(said[words // 2 :])}</p>"


def thread(number: int, rng: random.Random) -> Content:
    """Answers to one post that all quote it, and say a line."""
    quoted = f"<blockquote>{text(120, ('post', number // 5))}</blockquote>"
    author = name(rng.randrange(30), "author")
    return Content("Re: a question", f"<b>{author}</b>{quoted}<p>{text(9, ('answer', number))}</p>")


def timetable(number: int, rng: random.Random) -> Content:
    """A line at a stop: the same minutes in most hours."""
    minutes = " ".join(f"{minute:02}" for minute in range(4, 60, 14))
    hours = [(f"{hour:02}", minutes) for hour in range(5, 23)]
    hours[number % 18] = (hours[number % 18][0], f"{number:02} {(7 * number) % 60:02}")
    return Content("Timetable", rows(hours) + f"<p>{text(60, 'fares')}</p>")


def decision(number: int, rng: random.Random) -> Content:
    """A court decides alike in many cases: date, docket, parties and amount differ."""
    facts = f"In {name(number, 'party')} v. {name(number + 50, 'party')}, docket {code(number, rng)},"
    ruling = f"the court awards {rng.randrange(100, 99_999)} on day {rng.randrange(1, 365)}."
    return Content("Judgment", f"<p>{facts}</p>{spread(600, ruling, 'reasons')}")


def vacancy(number: int, rng: random.Random) -> Content:
    """Jobs of one firm: its praise of itself, a title, a place, two tasks."""
    title = name(number, "job")
    tasks = f"<ul><li>{text(7, ('task', number))}<li>{text(7, ('task', number, 2))}</ul>"
    return Content(
        f"{title} - Careers",
        f"<h1>{title}</h1><p>{name(number % 7, 'town')}</p>{tasks}<p>{text(280, 'firm')}</p>",
    )


def erratum(number: int, rng: random.Random) -> Content:
    """Notes on a fixed fault: package, version, number, one sentence."""
    package = f"lib{name(number, 'package').split()[0].lower()}"
    facts = rows(
        [
            ("Package", package),
            ("Fixed in", f"{number % 9}.{number}"),
            ("CVE", f"CVE-2026-{1000 + 37 * number}"),
        ]
    )
    return Content(
        "Advisory", facts + f"<p>{text(14, ('fault', number))}</p><p>{text(90, 'how to update')}</p>"
    )


def destructor(number: int, rng: random.Random) -> Content:
    """Members of one class: a sign or a letter tells their names apart."""
    sign = ["~", "!", "operator*", "operator=", "operator+=", "begin", "cbegin", "rbegin"][number % 8]
    thing = name(number // 8, "class").split()[0].lower()
    shown = f"<pre>{thing}::{sign}{thing if len(sign) == 1 else ''}();</pre>"
    return Content(f"{thing}::{sign}", shown + f"<p>{text(120, ('class', number // 8))}</p>")


def options(number: int, rng: random.Random) -> Content:
    """What a tariff has, as ticks and crosses."""
    has = [(name(at, "option"), "✓" if number >> at & 1 else "✗") for at in range(8)]
    return Content("Tariff", rows(has) + f"<p>{text(90, 'tariff')}</p>")


def rating(number: int, rng: random.Random) -> Content:
    """What guests thought of a house, in stars."""
    stars = [number % 5, number // 5 % 5, number // 25]
    shown = "".join(
        f"<p>{name(at, 'rated')}: {'★' * each}{'☆' * (4 - each)}</p>" for at, each in enumerate(stars)
    )
    return Content("Rating", f"{shown}<p>{text(60, 'rating')}</p>")


def trend(number: int, rng: random.Random) -> Content:
    """Whether shares rose or fell, in a line of text."""
    moves = ", ".join(f"{name(at, 'share')} {'+' if number >> at & 1 else '-'}1 %" for at in range(7))
    return Content("Trend", f"<p>Of yesterday: {moves}.</p><p>{text(80, 'trend')}</p>")


def items(lines: Iterable[object], tag: str = "ul") -> str:
    return f"<{tag}>{''.join(f'<li>{line}</li>' for line in lines)}</{tag}>"


def grid(lines: Iterable[Iterable[object]]) -> str:
    cells = ("".join(f"<td>{cell}</td>" for cell in line) for line in lines)
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in cells)}</table>"


def clock(minutes: int) -> str:
    return f"{minutes // 60 % 24}:{minutes % 60:02}"


def day(number: int) -> str:
    return f"{DAYS[number % 7]}, {1 + number % 28} {('June', 'July')[number // 28]}"


def baptisms(n: int, r: random.Random) -> Content:
    father, mother = name(r.randrange(20), "father"), name(r.randrange(20), "mother")
    people = [("Child", name(n, "child")), ("Father", father), ("Mother", mother), ("Page", 100 + n // 4)]
    return Content("Parish register", rows(people) + f"<p>{text(45, 'parish')}</p>")


def tides(n: int, r: random.Random) -> Content:
    levels = [f"{clock(50 * n % 700 + 372 * at)} {r.randrange(3, 70) / 10} m" for at in range(4)]
    return Content("Tides at the pier", f"<h2>{day(n)}</h2>{items(levels)}<p>{text(40, 'tides')}</p>")


def chess_problems(n: int, r: random.Random) -> Content:
    ranks = "/".join("".join(r.choices("KQRBNPkqrbnp12345", k=5)) for _ in range(8))
    return Content(
        "Mate in two", f"<p>White to move.</p><pre>{ranks} w - - 0 {n + 1}</pre>{text(20, 'mate')}"
    )


def price_lists(n: int, r: random.Random) -> Content:
    lines = [(text(2, ("ware", at)), f"{r.randrange(100, 900) / 100:.2f}") for at in range(12)]
    return Content(f"Price list {name(n, 'market')}", grid(lines) + f"<p>{text(25, 'vat')}</p>")


def stamps(n: int, r: random.Random) -> Content:
    said = f"<img src='/scan/{n:04}.png'><figcaption>{r.randrange(5, 95)} c</figcaption>"
    return Content("Stamps", f"<figure>{said}</figure>")


def hikes(n: int, r: random.Random) -> Content:
    points = [f"{47 + r.random():.5f} {11 + r.random():.5f}" for _ in range(10)]
    return Content(f"Hike {name(n, 'hike')}", f"<pre>{chr(10).join(points)}</pre><p>{text(60, 'boots')}</p>")


def insolvencies(n: int, r: random.Random) -> Content:
    who = f"{name(n, 'debtor')}, {r.randrange(1, 200)} {name(r.randrange(30), 'street')}, {code(n, r)}"
    return Content("Public notice", f"<p>{text(90, 'insolvent')} {who} {text(110, 'creditors')}</p>")


UNSEEN: dict[str, Maker] = {
    "options in ticks": options,
    "ratings in stars": rating,
    "trends of shares": trend,
    "answers that quote": thread,
    "timetable of a stop": timetable,
    "court decisions": decision,
    "jobs of one firm": vacancy,
    "software errata": erratum,
    "members of a class": destructor,
    "baptisms": baptisms,
    "tides": tides,
    "price lists": price_lists,
    "stamps": stamps,
    "chess problems": chess_problems,
    "hikes": hikes,
    "insolvencies": insolvencies,
}
