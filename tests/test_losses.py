"""Contents that stand where something changes in each answer: in its table, its list, or between two of its kind."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from uuid import UUID

import pytest

from tests.support.coroutines import driven
from tests.support.living import HOST, Answering, Chance, crawl, shuffled, slug
from tests.support.pages.everyday import name, text
from tests.support.strangers import ROWS

Said = Sequence[Any] | str
WORDS = "red", "green", "blue", "gold", "pink"


def drawn(chance: Chance, items: Sequence[str], between: str = "") -> str:
    return between.join(chance.sample(items, len(items)))


def table(said: Sequence[str], live: str) -> str:
    rows = "".join(f"<tr><th>{a}<td>{b}" for a, b in zip("ABC", said, strict=True))
    return f"<table>{rows}<tr><th>Now<td>{live}</table>"


def uuid(chance: Chance) -> UUID:
    return UUID(int=chance.getrandbits(128))


def lists(said: Sequence[Sequence[str]], chance: Chance) -> list[str]:
    return [f"<ul>{drawn(chance, [f'<li>{each}' for each in some])}</ul>" for some in said]


#: What is said of a thing, and what of two is.  The first five have a live one beside them that says the same now and then.
KINDS: dict[str, tuple[Callable[[Any, Chance], str], Said, Said]] = {
    "words": (lambda said, chance: table(said, chance.choice(["yes", "no"])), ["yes", "no", "no"], ["no", "yes", "no"]),
    "signs": (lambda said, chance: table(said, chance.choice("✓✗")), "✓✗✗", "✗✓✗"),
    "names": (lambda said, chance: table(said, chance.choice(["Ann", "Bob", "Cid"])), ["Ann", "Bob", "Cid"], ["Cid", "Ann", "Bob"]),
    "images": (
        lambda said, chance: table([f"<img src=/{each}.png>" for each in said], f"<img src=/{chance.choice('ab')}.png>"),
        "abb",
        "bab",
    ),
    "items": (
        lambda said, chance: f"<ul>{''.join(f'<li>{each}' for each in (*said, chance.choice(['yes', 'no'])))}</ul>",
        ["yes", "no", "no"],
        ["no", "yes", "no"],
    ),
    "terms": (
        lambda said, chance: f"<dl>{drawn(chance, [f'<dt>Desk {a}<dd>{b}' for a, b in zip('ABC', said, strict=True)])}</dl>",
        ["Ann", "Bob", "Cid"],
        ["Bob", "Cid", "Ann"],
    ),
    "headings": (
        lambda said, chance: drawn(chance, [f"<h3>Room {a}</h3><p>{b}</p>" for a, b in zip("ABC", said, strict=True)]),
        ["free", "free", "taken"],
        ["taken", "free", "free"],
    ),
    "lists in a list": (
        lambda said, chance: f"<ul>{''.join(map('<li>{}{}'.format, ('Monday', 'Friday'), lists(said, chance)))}</ul>",
        [["Ann", "Bob"], ["Cid", "Dan"]],
        [["Cid", "Dan"], ["Ann", "Bob"]],
    ),
    "lists in cells": (
        lambda said, chance: f"<table><tr>{''.join(map('<td>{}'.format, lists(said, chance)))}</table>",
        [["Ann", "Bob"], ["Cid", "Dan"]],
        [["Cid", "Dan"], ["Ann", "Bob"]],
    ),
    "labels in any order": (
        lambda said, chance: f"<p>{drawn(chance, [f'Rate: {said}%', f'Now: {chance.randrange(10, 99)}%'], '<br>')}</p>",
        "12",
        "34",
    ),
    "keys in any order": (
        lambda said, chance: f"<script type=application/json>{{{drawn(chance, [f'{a!r}: {b!r}' for a, b in zip('ABC', said, strict=True)], ', ')}}}</script>",
        ["yes", "no", "no"],
        ["no", "yes", "no"],
    ),
    "part of a line that is live": (
        lambda said, chance: f"<div><b>{said} EUR</b> <i>{text(9, chance.random())}</i></div>",
        "12",
        "34",
    ),
    "between ids": (lambda said, chance: f"<img src='/{uuid(chance)}/{said}.jpg?{uuid(chance)}'>", "red", "blue"),
}  # fmt: skip


@pytest.mark.parametrize("things", [1, 4])
@pytest.mark.parametrize("kind", KINDS)
@driven
async def test_what_stands_among_what_changes_is_not_lost(kind: str, things: int) -> None:
    say, *contents = KINDS[kind]

    def html(thing: int, said: Said, chance: Chance) -> str:
        return f"<h1>{name(thing)}</h1><p>{text(60, thing)}</p>{say(said, chance)}"

    pages = [
        Answering(f"{HOST}/{when}/{slug(thing, 'thing')}", f"{thing} {when}", partial(html, thing, said))
        for thing in range(things)
        for when, said in zip(("am", "pm"), contents, strict=True)
    ]
    for order in range(6):
        assert (await crawl(shuffled(pages, order), seed=order)).lost() == set()


#: How three facts of a thing are told, of `ROWS`.
FACTS = "table", "cells", "terms", "cards", "headings", "items", "items alone", "images"
BANKS = "", "fed", "ecb", "boe", "imf"
#: Addresses that may be one page's, for all that their names tell.
MAYBE_ONE: dict[str, Callable[[str, str], str]] = {
    "parameter": lambda thing, bank: f"/rates?of={thing}" + (f"&bank={bank}" if bank else ""),
    "source": lambda thing, bank: f"/{thing}/rates" + (f"?source={bank}" if bank else ""),
    "folder": lambda thing, bank: f"/{bank or 'all'}/{thing}",
}


@pytest.mark.parametrize("facts", FACTS)
@pytest.mark.parametrize("address", MAYBE_ONE)
@pytest.mark.parametrize("said", ["number", "word"])
@driven
async def test_what_a_parameter_or_a_folder_names_is_not_lost_beside_live_facts(
    facts: str, address: str, said: str
) -> None:
    def html(thing: int, bank: int, chance: Chance) -> str:
        rate, views = (thing * 7 + bank) % 5, chance.randrange(5)
        rows = {"Rate": f"10{rate}.{thing + 17 * bank}", "Views": str(chance.randrange(100, 10_000))}
        if said == "word":
            rows = {"Rate": WORDS[rate], "Views": WORDS[views]}
        rows["Now"] = f"{chance.randrange(10, 24)}:{chance.randrange(10, 60)}"
        all_rows, row = ROWS[facts]
        told = all_rows.format("".join(row.format(*each) for each in rows.items()))
        return f"<h1>{name(thing)}</h1><p>{text(60, thing)}</p>{told}"

    pages = [
        Answering(HOST + MAYBE_ONE[address](slug(thing, "thing"), bank), f"{thing} {bank}", partial(html, thing, at))
        for thing in range(8)
        for at, bank in enumerate(BANKS)
    ]  # fmt: skip
    assert (await crawl(shuffled(pages, 0))).lost() == set()


def weighing(at: int, kg: int, query: str = "") -> Answering:
    def html(chance: Chance) -> str:
        cells = f"<tr><th>Weight<td>{kg}<tr><th>Views<td>{chance.randrange(100, 1000)}"
        return f"<h1>{name(at)}</h1><p>{text(60, at)}</p><table>{cells}</table>"

    return Answering(f"{HOST}/{slug(at, 'thing')}-{kg}{query}", f"{at} {kg}", html)


@driven
async def test_the_first_page_that_is_dropped_by_its_kind_is_asked_itself() -> None:
    others = [*(weighing(at, 20) for at in (2, 1, 3, 4)), weighing(1, 20, "?x=mail")]
    assert (await crawl([*others, weighing(0, 20), weighing(0, 30)])).lost() == set()


@driven
async def test_it_is_so_though_others_are_dropped_meanwhile() -> None:
    same = [weighing(at, 20, query) for at in range(8) for query in ("", "?x=mail")]
    pages = [*same, *(weighing(at, 30) for at in range(3))]
    for order in range(8):
        assert (await crawl(shuffled(pages, order), seed=order, at_once=8)).lost() == set()
