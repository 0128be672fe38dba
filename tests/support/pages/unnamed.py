"""Kinds of page that nobody who worked on the verdict had named, and that no constant was chosen on.

As in `tests.support.pages.everyday`, a kind makes the n-th of its contents.
"""

import random
from collections.abc import Iterable

from tests.support.pages.everyday import DAYS, Content, Maker, code, name, rows, text

NOTES = ["A", "Am", "Bb", "C", "Cm", "D", "Dm", "E", "Em", "F", "Fm", "G", "Gm"]
AIRPORTS = [name(at, "airport").split()[0] for at in range(15)]


def items(lines: Iterable[object], tag: str = "ul") -> str:
    return f"<{tag}>{''.join(f'<li>{line}</li>' for line in lines)}</{tag}>"


def terms(pairs: Iterable[tuple[str, object]]) -> str:
    return f"<dl>{''.join(f'<dt>{term}</dt><dd>{said}</dd>' for term, said in pairs)}</dl>"


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


def soups(n: int, r: random.Random) -> Content:
    amounts = [f"{r.randrange(1, 90)} g {text(1, ('soup', at))}" for at in range(8)]
    steps = [text(14, ("step", at)) for at in range(6)]
    return Content(f"Soup no. {n + 1}", items(amounts) + items(steps, "ol"))


def tides(n: int, r: random.Random) -> Content:
    levels = [f"{clock(50 * n % 700 + 372 * at)} {r.randrange(3, 70) / 10} m" for at in range(4)]
    return Content("Tides at the pier", f"<h2>{day(n)}</h2>{items(levels)}<p>{text(40, 'tides')}</p>")


def results(n: int, r: random.Random) -> Content:
    clubs = [name(at, "club") for at in range(10)]
    lines = [(clubs[at], clubs[at + 1], f"{r.randrange(6)}:{r.randrange(6)}") for at in range(0, 10, 2)]
    return Content(f"Results, round {n + 1}", grid(lines))


def shanties(n: int, r: random.Random) -> Content:
    lines = [f"<p>{text(5, ('shanty', n, at))}<br><i>haul away, Joe, haul away</i>" for at in range(4)]
    return Content("Shanties", "".join(lines))


def parts(n: int, r: random.Random) -> Content:
    lines = [(at + 1, text(2, ("part", at)), f"{r.randrange(1, 9)} pcs") for at in range(15)]
    return Content(f"Assembly {code(n, r)}", grid(lines))


def causes(n: int, r: random.Random) -> Content:
    parties = f"{name(n, 'plaintiff')} v {name(r.randrange(30), 'defendant')}"
    said = terms([("Court", 1 + n % 4), ("Matter", parties), ("At", clock(540 + 5 * n))])
    return Content("Cause list", said + text(30, "causes"))


def lunches(n: int, r: random.Random) -> Content:
    dishes = [f"{text(3, ('dish', r.randrange(60)))} {r.randrange(4, 15)}.50" for _ in range(4)]
    return Content("Lunch of the day", f"<h2>{day(n)}</h2>{items(dishes)}<p>{text(35, 'allergens')}</p>")


def obituaries(n: int, r: random.Random) -> Content:
    who, born = name(n, "late"), r.randrange(1920, 1960)
    said = f"<p><b>{who}</b>, {born} to 2026</p><p>{text(18, ('late', n))}</p>"
    return Content(who, f"{said}<p>{text(90, 'condolence')}</p>")


def chess_problems(n: int, r: random.Random) -> Content:
    ranks = "/".join("".join(r.choices("KQRBNPkqrbnp12345", k=5)) for _ in range(8))
    return Content(
        "Mate in two", f"<p>White to move.</p><pre>{ranks} w - - 0 {n + 1}</pre>{text(20, 'mate')}"
    )


def rain_gauges(n: int, r: random.Random) -> Content:
    fallen = [(each, f"{r.randrange(300) / 10} mm") for each in DAYS]
    return Content("Rain gauge", terms([("Gauge", 300 + n), *fallen]))


def price_lists(n: int, r: random.Random) -> Content:
    lines = [(text(2, ("ware", at)), f"{r.randrange(100, 900) / 100:.2f}") for at in range(12)]
    return Content(f"Price list {name(n, 'market')}", grid(lines) + f"<p>{text(25, 'vat')}</p>")


def stops(n: int, r: random.Random) -> Content:
    route = r.sample([name(at, "stop") for at in range(60)], 12)
    return Content(f"Line {n + 1}", items(route, "ol") + f"<p>{text(50, 'tickets')}</p>")


def ships(n: int, r: random.Random) -> Content:
    said = [("Vessel", name(n, "ship")), ("Berth", r.randrange(9)), ("ETA", clock(r.randrange(1440)))]
    return Content("Movements", rows(said))


def lots(n: int, r: random.Random) -> Content:
    said = f"<p>{text(22, ('lot', n))}</p><p>Estimate {r.randrange(1, 90)}00</p>"
    return Content(f"Lot {n + 1}", said + f"<p>{text(140, 'conditions')}</p>")


def stars(n: int, r: random.Random) -> Content:
    where = f"{r.randrange(24)}h {r.randrange(60)}m, {r.randrange(-89, 90)}&deg; {r.randrange(60)}&prime;"
    return Content("Catalogue of stars", f"<p>HD {20_000 + 37 * n}</p><p>{where}</p>")


def birds(n: int, r: random.Random) -> Content:
    seen = f"{r.randrange(1, 40)} {name(r.randrange(25), 'bird')} at {name(n, 'lake')}"
    return Content("Sightings", f"<article><p>{seen}</p></article><p>{text(55, 'birds')}</p>")


def knitting(n: int, r: random.Random) -> Content:
    lines = [" ".join(f"{r.choice('kp')}{r.randrange(1, 6)}" for _ in range(6)) for _ in range(8)]
    return Content("Pattern", items(lines) + f"<p>{text(40, 'wool')}</p>")


def crosswords(n: int, r: random.Random) -> Content:
    lines = [f"{text(4, ('clue', n, at))} ({r.randrange(3, 12)})" for at in range(6)]
    return Content(f"Crossword {1200 + n}", f"<h2>Across</h2>{items(lines, 'ol')}<p>{text(20, 'solve')}</p>")


def radio(n: int, r: random.Random) -> Content:
    lines = [f"{clock(360 + 55 * at)} {text(3, ('show', r.randrange(50)))}" for at in range(14)]
    return Content("Programme", f"<h2>{day(n)}</h2>{items(lines)}")


def screenings(n: int, r: random.Random) -> Content:
    times = ", ".join(clock(840 + 15 * r.randrange(35)) for _ in range(3))
    said = f"<p>{text(60, ('film', n // 2))}</p><p>{name(n, 'cinema')}: {times}</p>"
    return Content(name(n // 2, "film"), said)


def roadworks(n: int, r: random.Random) -> Content:
    where = f"A{r.randrange(1, 30)} between {name(n, 'exit')} and {name(n + 50, 'exit')}, until {day(n)}"
    return Content("Road works", f"<p>{where}</p><p>{text(70, 'detour')}</p>")


def pollen(n: int, r: random.Random) -> Content:
    plants = ["alder", "birch", "hazel", "grass", "rye", "mugwort"]
    lines = [(plant, r.choice(["none", "low", "medium", "high"])) for plant in plants]
    return Content("Pollen", f"<p>Region {name(n, 'region')}</p>{rows(lines)}")


def planning(n: int, r: random.Random) -> Content:
    what = f"{code(n, r)}: {text(8, ('works', n % 9))} at {r.randrange(1, 99)} {name(n, 'street')}"
    return Content("Application", f"<p>{what}</p><p>{text(160, 'objections')}</p>")


def minerals(n: int, r: random.Random) -> Content:
    formula = "".join(f"{r.choice(['Al', 'Ca', 'Fe'])}<sub>{r.randrange(2, 9)}</sub>" for _ in range(4))
    said = [("Name", name(n, "mineral")), ("Formula", formula), ("Hardness", r.randrange(1, 11))]
    return Content("Minerals", terms(said))


def engines(n: int, r: random.Random) -> Content:
    figures = [("Number", f"52 {8000 + n}"), ("Built", r.randrange(1900, 1950))]
    return Content("Locomotives", rows(figures) + f"<p>{text(130, ('class', n // 8))}</p>")


def stamps(n: int, r: random.Random) -> Content:
    said = f"<img src='/scan/{n:04}.png'><figcaption>{r.randrange(5, 95)} c</figcaption>"
    return Content("Stamps", f"<figure>{said}</figure>")


def coins(n: int, r: random.Random) -> Content:
    said = f"{1800 + n} {r.choice('ABDFGJ')}, {r.randrange(10_000, 99_999)} struck"
    return Content("Coins", f"<p>{said}</p><p>{text(48, 'coin')}</p>")


def grants(n: int, r: random.Random) -> Content:
    said = f"{name(n, 'grantee')}: {r.randrange(1, 900)},000"
    return Content("Grants", f"<p>{said}</p><p>{text(200, ('fund', n // 10))}</p>")


def theses(n: int, r: random.Random) -> Content:
    title = text(7, ("thesis", n)).rstrip(".")
    return Content(title, f"<blockquote>{text(110, ('abstract', n))}</blockquote>")


def lost_property(n: int, r: random.Random) -> Content:
    what = f"{text(2, ('thing', n % 6))}, found on line {r.randrange(1, 40)}, kept as {700 + n}"
    return Content("Lost property", f"<div><div><span>{what}</span></div></div><p>{text(65, 'lost')}</p>")


def blood_donation(n: int, r: random.Random) -> Content:
    said = f"<p>{name(n % 10, 'hall')}</p><p>{day(n)}, {clock(900 + 15 * (n % 5))}</p>"
    return Content("Give blood", f"{said}<p>{text(85, 'blood')}</p>")


def lifts(n: int, r: random.Random) -> Content:
    lines = [(text(2, ("check", at)), "passed" if r.random() < 0.8 else "to be mended") for at in range(14)]
    return Content(f"Lift {4000 + n}", rows(lines))


def hikes(n: int, r: random.Random) -> Content:
    points = [f"{47 + r.random():.5f} {11 + r.random():.5f}" for _ in range(10)]
    return Content(f"Hike {name(n, 'hike')}", f"<pre>{chr(10).join(points)}</pre><p>{text(60, 'boots')}</p>")


def error_codes(n: int, r: random.Random) -> Content:
    said = f"<p>{text(9, ('error', n % 8))}</p><code>0x{r.randrange(16**6):06x}</code>"
    return Content("Error codes", f"<h2>E{1000 + 3 * n}</h2>{said}<p>{text(75, 'errors')}</p>")


def chords(n: int, r: random.Random) -> Content:
    lines = [" | ".join(r.choice(NOTES) for _ in range(4)) for _ in range(6)]
    return Content(f"Tune {n + 1}", f"<pre>{chr(10).join(lines)}</pre>")


def dialect(n: int, r: random.Random) -> Content:
    word = name(n, "dialect").split()[1].lower()
    said = f"<p><b>{word}</b>, {text(6, ('sense', n % 12))}</p>"
    return Content(f"{word} - Glossary", f"{said}<p>{text(30, 'glossary')}</p>")


def pedigrees(n: int, r: random.Random) -> Content:
    sire, dam, *others = (name(r.randrange(40), "bull") for _ in range(6))
    said = f"<li>{sire}{items(others[:2])}</li><li>{dam}{items(others[2:])}</li>"
    return Content(name(n, "cow"), f"<ul>{said}</ul>")


def insolvencies(n: int, r: random.Random) -> Content:
    who = f"{name(n, 'debtor')}, {r.randrange(1, 200)} {name(r.randrange(30), 'street')}, {code(n, r)}"
    return Content("Public notice", f"<p>{text(90, 'insolvent')} {who} {text(110, 'creditors')}</p>")


def departures(n: int, r: random.Random) -> Content:
    said = [clock(300 + 7 * n), f"XA {100 + n}", r.choice(AIRPORTS), f"Gate {r.randrange(1, 40)}"]
    return Content("Departure", grid([said]) + f"<p>{text(95, 'luggage')}</p>")


def zone_files(n: int, r: random.Random) -> Content:
    hosts = [f"{text(1, at)} IN A 10.{n}.{r.randrange(256)}.{r.randrange(256)}" for at in range(7)]
    return Content("Zone file", f"<pre>{chr(10).join(hosts)}</pre>")


def dialling_codes(n: int, r: random.Random) -> Content:
    return Content("Dialling codes", f"<p>0{2000 + 17 * n} {name(n, 'town')}</p><p>{text(28, 'dial')}</p>")


UNNAMED: dict[str, Maker] = {
    make.__name__.replace("_", " "): make
    for make in (
        baptisms, soups, tides, results, shanties, parts, causes, lunches, obituaries, chess_problems,
        rain_gauges, price_lists, stops, ships, lots, stars, birds, knitting, crosswords, radio,
        screenings, roadworks, pollen, planning, minerals, engines, stamps, coins, grants, theses,
        lost_property, blood_donation, lifts, hikes, error_codes, chords, dialect, pedigrees, insolvencies,
        departures, zone_files, dialling_codes,
    )
}  # fmt: skip
