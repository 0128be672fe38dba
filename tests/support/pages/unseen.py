"""Kinds of page on which no constant of the verdict was chosen: made after it, to try it.

As in `tests.support.pages.everyday`, a kind makes the n-th of its contents.
"""

import random
from collections.abc import Sequence

from tests.support.pages.everyday import Content, Maker, code, name, rows, text

NOTES = ["C", "D", "E", "F", "G", "A", "B"]
FILES, RANKS = "abcdefgh", "12345678"
TEAMS = [name(at, "team") for at in range(12)]


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


def game(number: int, rng: random.Random) -> Content:
    """A game of chess: an opening that many share, then its own moves."""
    opening = [
        "e4", "e5", "Nf3", "Nc6", "Bb5", "a6", "Ba4", "Nf6", "O-O", "Be7", "Re1", "b5", "Bb3", "d6", "c3",
        "O-O", "h3", "Nb8", "d4", "Nbd7",
    ]  # fmt: skip
    moves = [rng.choice("NBRQK") + rng.choice(FILES) + rng.choice(RANKS) for _ in range(14)]
    played = " ".join(f"{at // 2 + 1}. {move}" for at, move in enumerate(opening + moves))
    return Content("Game", f"<p>{played}</p><p>{text(20, 'event')}</p>")


def recipe(number: int, rng: random.Random) -> Content:
    """Variants of a dish: one ingredient and its amount differ."""
    dish = number // 5
    items = [f"{10 * at + 5} g {text(1, ('ingredient', dish, at))}" for at in range(9)]
    items[4] = f"{rng.randrange(3, 400)} g {name(number, 'ingredient')}"
    steps = f"<p>{text(180, ('steps', dish))}</p>"
    return Content(name(dish, "dish"), "<ul>" + "".join(f"<li>{item}" for item in items) + f"</ul>{steps}")


def exam(number: int, rng: random.Random) -> Content:
    """A question with four answers, of which the right one is another."""
    answers = [text(5, ("answer", number // 4, at)) for at in range(4)]
    right = f"<p>Right: {'ABCD'[number % 4]}, by {name(number, 'pupil')}"
    return Content(
        "Exam", f"<p>{text(40, ('exam', number // 4))}" + "".join(f"<li>{x}" for x in answers) + right
    )


def score(number: int, rng: random.Random) -> Content:
    """Sheet music in letters: pieces of few different notes."""
    bars = " | ".join(" ".join(rng.choices(NOTES, k=4)) for _ in range(16))
    return Content("Sheet music", f"<pre>{bars}</pre><p>{text(80, 'licence of the edition')}</p>")


def station(number: int, rng: random.Random) -> Content:
    """Measures of a day: most values are as on other days."""
    values = [(f"{hour:02}:00", f"{12 + (hour * 7 + number % 3) % 9} C") for hour in range(24)]
    values[rng.randrange(24)] = ("Maximum", f"{rng.randrange(200, 400) / 10} C, day {number}")
    return Content("Weather station", rows(values))


def patent(number: int, rng: random.Random) -> Content:
    """Claims of one family: the same text, one of the claims is another."""
    claims = [text(35, ("claim", number // 4, at)) for at in range(9)]
    claims[number % 4 + 2] = text(12, ("own claim", number))
    head = rows([("Publication", code(number, rng)), ("Family", number // 4)])
    return Content("Patent", head + "".join(f"<li>{claim}" for claim in claims))


def vacancy(number: int, rng: random.Random) -> Content:
    """Jobs of one firm: its praise of itself, a title, a place, two tasks."""
    title = name(number, "job")
    tasks = f"<ul><li>{text(7, ('task', number))}<li>{text(7, ('task', number, 2))}</ul>"
    return Content(
        f"{title} - Careers",
        f"<h1>{title}</h1><p>{name(number % 7, 'town')}</p>{tasks}<p>{text(280, 'firm')}</p>",
    )


def estate(number: int, rng: random.Random) -> Content:
    """Flats in one house: storey, area, rent."""
    house = number // 8
    facts = [("Storey", number % 8), ("Area", rng.randrange(40, 120)), ("Rent", rng.randrange(500, 2_500))]
    return Content(f"{name(house, 'street')} {house}", f"<p>{text(160, ('house', house))}</p>" + rows(facts))


def entry(number: int, rng: random.Random) -> Content:
    """An entry of a dictionary, in a frame of help."""
    word = name(number, "word").split()[0]
    return Content(
        f"{word}: meaning", f"<h1>{word}</h1><p>{text(7, ('meaning', number))}</p><p>{text(60, 'help')}</p>"
    )


def event(number: int, rng: random.Random) -> Content:
    """A tour comes to a place: date, hall and price differ."""
    where = f"{name(number, 'hall')}, {1 + number % 28} May, {rng.randrange(20, 90)} euros"
    return Content(
        f"{name(number // 10, 'artist')} live", f"<p>{where}</p><p>{text(140, ('tour', number // 10))}</p>"
    )


def result(number: int, rng: random.Random) -> Content:
    """A match: teams, score, scorers, in a table of the season."""
    home, away = rng.sample(TEAMS, 2)
    goals = f"{home} {rng.randrange(6)} : {rng.randrange(6)} {away}, round {number + 1}"
    table = rows([(team, 3 * at) for at, team in enumerate(TEAMS)])
    return Content("Result", f"<h2>{goals}</h2><p>{text(5, ('scorers', number))}</p>{table}")


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


def licence(number: int, rng: random.Random) -> Content:
    """Versions of a licence: one clause, the holder and the year differ."""
    clause = text(10, ("clause", number))
    holder = f"Copyright {1990 + number} {name(number, 'holder')}"
    return Content("Licence", f"<p>{holder}</p>{spread(350, clause, ('licence', number // 6))}")


def destructor(number: int, rng: random.Random) -> Content:
    """Members of one class: a sign or a letter tells their names apart."""
    sign = ["~", "!", "operator*", "operator=", "operator+=", "begin", "cbegin", "rbegin"][number % 8]
    thing = name(number // 8, "class").split()[0].lower()
    shown = f"<pre>{thing}::{sign}{thing if len(sign) == 1 else ''}();</pre>"
    return Content(f"{thing}::{sign}", shown + f"<p>{text(120, ('class', number // 8))}</p>")


def ballot(number: int, rng: random.Random) -> Content:
    """Votes in a district: the same parties, other numbers."""
    votes: Sequence[tuple[str, object]] = [(team, rng.randrange(100, 30_000)) for team in TEAMS]
    return Content("Election result", rows(votes) + f"<p>{text(50, 'how votes are counted')}</p>")


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


UNSEEN: dict[str, Maker] = {
    "options in ticks": options, "ratings in stars": rating, "trends of shares": trend,
    "answers that quote": thread, "timetable of a stop": timetable, "court decisions": decision,
    "chess games": game, "recipes, variants": recipe, "exam answers": exam, "sheet music": score,
    "weather by the hour": station, "patents of a family": patent, "jobs of one firm": vacancy,
    "flats of one house": estate, "dictionary, short": entry, "events of a tour": event,
    "sports results": result, "software errata": erratum, "licences, versions": licence,
    "members of a class": destructor, "votes by district": ballot,
}  # fmt: skip
