"""Kinds of page that differ in nothing but a sign, a state, a class, a target, an attribute, or case.

As in `tests.support.pages.everyday`, a kind makes the n-th of its contents; the words of all its pages are the same.
"""

import random

from tests.support.pages.everyday import Content, Maker, text


def states(on: str, off: str, line: str = "<tr><td>{label}<td>{state}") -> Maker:
    """Eight lines, each of which is in one of two states."""

    def make(number: int, rng: random.Random) -> Content:
        bits = (73 * number + 19) % 256
        lines = [
            line.format(label=f"{text(2, ('line', at))}", state=on if bits >> at & 1 else off)
            for at in range(8)
        ]
        shown = f"<table>{''.join(lines)}</table>" if line.startswith("<tr>") else "".join(lines)
        return Content("Overview", f"{shown}<p>{text(60, on)}</p>")

    return make


def targets(body: str, in_head: bool = False) -> Maker:
    """Something that no reader sees in words: ``{n}`` is a number, ``{ten}`` one of ten digits, ``{uuid}`` an id, ``{said}`` some words."""

    def make(number: int, rng: random.Random) -> Content:
        ten = 1_000_231_931 + 7_919 * number
        said = text(30, (body, number))
        filled = body.format(
            n=200 + number, ten=ten, uuid=f"{ten:08x}-884c-4d65-9a2f-eaa0c55ad015", said=said
        )
        frame = f"<p>{text(60, body)}</p>"
        return Content("Record", frame, filled) if in_head else Content("Record", frame + filled)

    return make


def indented(number: int, rng: random.Random) -> Content:
    """A listing whose columns say which of eight things are there."""
    bits = (73 * number + 19) % 256
    lines = [" " * (4 if bits >> at & 1 else 12) + "x" for at in range(8)]
    return Content("Listing", f"<p>{text(60, 'listing')}</p><pre>{chr(10).join(lines)}</pre>")


def nested(number: int, rng: random.Random) -> Content:
    """A list of eight lines, of which some belong to the line before."""
    bits = (73 * number + 19) % 256
    lines = [f"<ul><li>{text(2, at)}</ul>" if bits >> at & 1 else f"<li>{text(2, at)}" for at in range(8)]
    return Content("Outline", f"<p>{text(60, 'outline')}</p><ul><li>{text(2, 'top')}{''.join(lines)}</ul>")


PLAIN = "<p>{label} {state}</p>"
SIGNS: dict[str, Maker] = {
    "ticks": states("✓", "✗"),
    "ticks and nothing": states("✓", ""),
    "plus and minus": states("+", "-"),
    "arrows": states("▲", "▼"),
    "free and busy by class": states("free", "busy", "<tr><td>{label}<td class={state}>&nbsp;"),
    "stars by class": states("star-full", "star-empty", "<p>{label} <i class={state}></i></p>"),
    "colours by style": states("#1a7f37", "#cf222e", "<p>{label} <b style='color:{state}'>here</b></p>"),
    "icons": states("yes", "no", "<p>{label} <svg><use href='#{state}'/></svg></p>"),
    "checked boxes": states("checked", "", "<p><input type=checkbox {state}> {label}</p>"),
    "chosen options": states("selected", "", "<select><option>no<option {state}>{label}</select>"),
    "pressed buttons": states("true", "false", "<button aria-pressed={state}>{label}</button>"),
    "open details": states("open", "", "<details {state}><summary>{label}</summary>more</details>"),
    "struck through": states("s", "span", "<p><{state}>{label}</{state}></p>"),
    "right answers in bold": states("b", "span", "<p><{state}>{label}</{state}></p>"),
    "deleted and inserted": states("del", "ins", "<p><{state}>{label}</{state}></p>"),
    "superscript": states("m<sup>2</sup>", "m2", PLAIN),
    "case of units": states("10 Mb", "10 MB", PLAIN),
    "case of options": states("-a", "-A", PLAIN),
    "cells of two columns": states("2", "1", "<tr><td colspan={state}>{label}<td>x"),
    "spaces in a listing": indented,
    "lines of an outline": nested,
    "start of a list": targets("<ol start={n}><li>first<li>second</ol>"),
    "one link": targets("<a href='/files/{n}.zip'>Download</a>"),
    "link of ten digits": targets("<a href='/doc?key={ten}'>Open</a>"),
    "link of a uuid": targets("<a href='/files/{uuid}'>Open</a>"),
    "form action": targets("<form action='/order/{n}' method=post><button>Order</button></form>"),
    "button action": targets("<form><button formaction='/order/{n}'>Order</button></form>"),
    "value of a field": targets("<form action='/order'><input type=hidden name=item value='{n}'><button>Order</button></form>"),
    "meta refresh": targets("<meta http-equiv=refresh content='120; url=/t/{n}'>", in_head=True),
    "link of a drawing": targets("<svg><a xlink:href='/doc/{n}'><text>open</text></a></svg>"),
    "frame of ten digits": targets("<iframe src='/doc?key={ten}'></iframe>"),
    "custom element": targets("<product-card sku='{n}' price='{n}.90'></product-card>"),
    "wire:snapshot": targets("<div wire:snapshot='{{&quot;post&quot;:{n}}}'></div>"),
    "data attributes": targets("<div data-lat='48.{n}' data-lon='11.{n}'></div>"),
    "citation_pdf_url": targets("<meta name=citation_pdf_url content='/pdf/{n}.pdf'>", in_head=True),
    "route in a fragment": targets("<a href='/app#/doc/{n}'>open</a>"),
    "magnet": targets("<a href='magnet:?xt=urn:btih:{n}{ten}'>Download</a>"),
    "place on a map": targets("<a href='geo:48.{n},11.{n}'>Map</a>"),
    "message": targets("<a href='sms:+49{ten}'>Write to us</a>"),
    "picture of ten digits": targets("<img src='/i/{ten}.jpg'>"),
    "bar": targets("<progress max=500 value={n}></progress>"),
    "moment": targets("<time datetime='2026-01-01T00:{n}'>soon</time>"),
    "CDATA": targets("<svg><text><![CDATA[{said}]]></text></svg>"),
}  # fmt: skip
