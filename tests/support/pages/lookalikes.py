"""Test cases for the verdict: pairs of pages that look alike and are no near-duplicates.

>>> left, right = NEGATIVES["calendars"](random.Random(3))
>>> left.count("<td>"), right.count("<td>"), left == right
(31, 31, False)
"""

import random
import re
from collections.abc import Callable

from tests.support.pages.prose import Prose, address

Negative = Callable[[random.Random], tuple[str, str]]
NEGATIVES: dict[str, Negative] = {}

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def _negative(pair: Negative) -> Negative:
    return NEGATIVES.setdefault(pair.__name__, pair)


def _site(rng: random.Random) -> tuple[Prose, Callable[..., str], int]:
    """A language, the template of a site around a page, and how many words a page has."""
    prose = Prose(rng)
    menu = prose.links(rng.randint(3, 25), 3)
    aside, foot = prose.text(rng.randint(5, 80)), prose.text(rng.randint(5, 40))

    def page(*body: str) -> str:
        return (
            f"<!DOCTYPE html><html><head><title>{prose.text(4)}</title></head><body><ul>{menu}</ul>"
            f"<main>{' '.join(body)}</main><aside>{aside}</aside><footer>{foot}</footer></body></html>"
        )

    return prose, page, int(60 * 2 ** rng.uniform(0, 5.3))


@_negative
def same_template(rng: random.Random) -> tuple[str, str]:
    """Two articles of a site."""
    prose, page, size = _site(rng)
    return page(prose.blocks(size)), page(prose.blocks(size))


@_negative
def product_variants(rng: random.Random) -> tuple[str, str]:
    """Two products of a shop: the same labels and conditions, other values and descriptions."""
    prose, page, size = _site(rng)
    labels = [prose.text(2) for _ in range(rng.randint(3, 15))]
    terms = prose.text(size // rng.randint(2, 5))

    def variant() -> str:
        rows = [f"<tr><th>{label}</th><td>{prose.text(1)} {rng.randint(1, 99)}</td></tr>" for label in labels]
        return page(f"<table>{''.join(rows)}</table>", prose.blocks(size), f"<p>{terms}</p>")

    return variant(), variant()


@_negative
def paginated_lists(rng: random.Random) -> tuple[str, str]:
    """Two pages of a list: the same introduction and pager, other entries."""
    prose, page, size = _site(rng)
    intro, first, words = prose.text(rng.randint(5, 40)), rng.randint(1, 8), rng.randint(6, 40)
    pager = " ".join(f'<a href="/list?page={number}">{number}</a>' for number in range(1, 11))
    left, right = (
        page(f"<p>{intro} Page {number} of 10</p><ol>{prose.blocks(size, '<li>{}</li>', words)}</ol>{pager}")
        for number in (first, first + 1)
    )
    return left, right


@_negative
def calendars(rng: random.Random) -> tuple[str, str]:
    """Two months of a calendar: the same days and regular events, other events."""
    prose, page, size = _site(rng)
    weekly = [prose.text(rng.randint(1, 4)) for _ in range(7)]

    def month() -> str:
        events = [prose.text(rng.randint(1, 2 + size // 31)) for _ in range(31)]
        days = [f"<td>{day + 1} {weekly[day % 7]} {event}</td>" for day, event in enumerate(events)]
        return page(f"<h1>{rng.choice(_MONTHS)}</h1><table><tr>{'</tr><tr>'.join(days)}</tr></table>")

    return month(), month()


@_negative
def error_pages(rng: random.Random) -> tuple[str, str]:
    """A page that says, with status 200, "not found" and suggests others; and a page of that site."""
    prose, page, size = _site(rng)
    sorry = f"Sorry, {address(prose.text(3))} was not found or has moved. Did you look for one of these?"
    return page(f"<p>{sorry}</p><ul>{prose.links(5 + size // 20, 6)}</ul>"), page(prose.blocks(size))


@_negative
def login_walls(rng: random.Random) -> tuple[str, str]:
    """A teaser before a wall of text that asks to log in; and another teaser, or what is behind the wall."""
    prose, page, size = _site(rng)
    teaser, wall = prose.blocks(size // 2), f"<form>Log in to read on. {prose.text(size // 3)}<input></form>"
    other = page(prose.blocks(size // 2), wall) if rng.random() < 0.5 else page(teaser, prose.blocks(size))
    return page(teaser, wall), other


@_negative
def translated_pages(rng: random.Random) -> tuple[str, str]:
    """A page and its translation: the same menu, structure, names and numbers."""
    prose, page, size = _site(rng)
    original = page(prose.blocks(size), f"<p>{rng.randint(2, 99)} {prose.text(3)} {rng.randint(2, 99)}</p>")
    foreign = {word: word[::-1] + rng.choice(["a", "en", "os", "ir"]) for word in prose.words}
    head, main, rest = original.partition("<main>")
    words = re.split(r"(<[^>]*>|\W+)", rest)
    return original, head + main + "".join(foreign.get(word, word) for word in words)
