"""Whatever tells two pages apart counts: at addresses that name two pages, only comments make no difference.

Pages that differ in what no rule of tokens reads are content all the same, and so is what lies behind them.
"""

from collections.abc import Callable, Iterable
from typing import Any
from uuid import UUID

import pytest

import dedup
from tests.support.crawls import Answer, Crawl, Run, Walker, html, words

RECORD = f"<title>Record</title><h1>Record</h1><p>{words('record', 80)}</p>"

#: What a reader, a script or a link can tell apart, by what it is.
PAIRS = {
    # Where something stands, and which of several it is.
    "tick of another column": ("<td>✓<td><td>x", "<td><td>✓<td>x"),
    "tick of another word": ("heating ✓ lift garden", "heating lift ✓ garden"),
    "minus of another cell": ("<td>-7<td>7", "<td>7<td>-7"),
    "operator between other words": ("<pre>x - y z</pre>", "<pre>x y - z</pre>"),
    "boxes that are checked": (
        "<input type=checkbox checked>lift<input type=checkbox>garden",
        "<input type=checkbox>lift<input type=checkbox checked>garden",
    ),
    "button of a choice": (
        "<input type=radio name=c checked>red<input type=radio name=c>blue",
        "<input type=radio name=c>red<input type=radio name=c checked>blue",
    ),
    "option that is chosen": ("<option selected>red<option>blue", "<option>red<option selected>blue"),
    "checked by ARIA": ("<i role=switch aria-checked=true></i>", "<i role=switch aria-checked=false></i>"),
    "class of a cell": ("<td class=sold>3<td class=open>4", "<td class=open>3<td class=sold>4"),
    "icon of a class": ("<i class='icon-yes'></i>lift", "<i class='icon-no'></i>lift"),
    "stars of a class": ("<b class='stars s5'></b>", "<b class='stars s1'></b>"),
    "flag of a class": ("<i class='flag it'></i>", "<i class='flag es'></i>"),
    # Marks upon words.
    "struck out": ("<s>tea</s> coffee", "tea <s>coffee</s>"),
    "deleted and inserted": ("<del>tea</del><ins>cake</ins>", "<ins>tea</ins><del>cake</del>"),
    "bold": ("<b>tea</b> coffee", "tea <b>coffee</b>"),
    "power": ("10<sup>9</sup>", "10<sub>9</sub>"),
    "hidden": ("<p hidden>tea</p>", "<p>tea</p>"),
    "column that is wider": ("<td colspan=3>tea", "<td colspan=4>tea"),
    "number of the first": ("<ol start=4><li>tea</ol>", "<ol start=8><li>tea</ol>"),
    "title of a span": ("<span title=tea>i</span>", "<span title=cake>i</span>"),
    # Case, spaces and signs.
    "case of a unit": ("20 Mb", "20 MB"),
    "case of a word": ("a reading in reading", "a reading in Reading"),
    "case of an option": ("tar -c", "tar -C"),
    "point of a number": ("4.5", "45"),
    "place of the point": ("2.34", "23.4"),
    "day and month": ("1/12", "11/2"),
    "spaces": ("<pre>a   b</pre>", "<pre>a b</pre>"),
    "indentation": ("<pre>for x:\n  y\n  z</pre>", "<pre>for x:\n  y\nz</pre>"),
    "language": ("written in C", "written in C#"),
    "comparison": ("x &lt; y", "x &gt;= y"),
    "negation": ("while (done)", "while (!done)"),
    "sign of a number": ("+3", "-3"),
    "currency": ("£9", "¥9"),
    "per mille": ("9 %", "9 ‰"),
    "arrow": ("← exit", "→ exit"),
    "fraction": ("¾ cup", "¼ cup"),
    "square": ("x²", "x2"),
    "accent": ("cote", "côté"),
    "question": ("Open?", "Open!"),
    "bracket": ("f(g(x) + 1)", "f(g(x + 1))"),
    "quotation": ("“yes” she said", "yes she said"),
    "hyphen": ("re-cover", "recover"),
    "emoji": ("🙂", "🙁"),
    "playing card": ("K♦", "K♣"),
    "braille": ("⠓⠊", "⠊⠓"),
    # What is drawn.
    "width of a bar": ("<p style='width:12%'></p>", "<p style='width:88%'></p>"),
    "colour": ("<td bgcolor=lime>tea", "<td bgcolor=gray>tea"),
    "meter": ("<meter value=.2></meter>", "<meter value=.9></meter>"),
    "progress": ("<progress max=9 value=1></progress>", "<progress max=9 value=8></progress>"),
    "line": ("<svg><path d='M1 1L2 8'/></svg>", "<svg><path d='M1 1L8 2'/></svg>"),
    "circle": ("<svg><circle r=2 /></svg>", "<svg><circle r=7 /></svg>"),
    "symbol": ("<svg><use href='#on'/></svg>", "<svg><use href='#off'/></svg>"),
    "image": ("<img src=/pics/4.png>", "<img src=/pics/5.png>"),
    "image in the page": ("<img src='data:image/gif;base64,R0lGODdh'>", "<img src='data:image/gif;base64,R0lGODlh'>"),
    "image of a style": ("<p style='background:url(/4.png)'></p>", "<p style='background:url(/5.png)'></p>"),
    "poster": ("<video poster=/4.jpg></video>", "<video poster=/5.jpg></video>"),
    # Where something leads.
    "fragment": ("<a href='#north'>map</a>", "<a href='#south'>map</a>"),
    "number to call": ("<a href='tel:5550001'>call</a>", "<a href='tel:5550002'>call</a>"),
    "mailbox": ("<a href='mailto:ann@a.org'>write</a>", "<a href='mailto:bob@a.org'>write</a>"),
    "place on a map": ("<a href='geo:48.2,16.3'>map</a>", "<a href='geo:47.1,15.4'>map</a>"),
    "program of a link": ("<a href='javascript:show(4)'>map</a>", "<a href='javascript:show(5)'>map</a>"),
    "program of a button": ("<button onclick='add(4)'>add</button>", "<button onclick='add(5)'>add</button>"),
    "target of a button": ("<button formaction=/add/4>add</button>", "<button formaction=/add/5>add</button>"),
    "field that is not shown": ("<input type=hidden name=n value=4>", "<input type=hidden name=n value=5>"),
    "base": ("<base href=/4/><a href=map>map</a>", "<base href=/5/><a href=map>map</a>"),
    "canonical address": ("<link rel=canonical href=/4>", "<link rel=canonical href=/5>"),
    "applet": ("<applet code=Four></applet>", "<applet code=Five></applet>"),
    # What scripts and other readers find.
    "variable": ("<script>let price = 4;</script>", "<script>let price = 5;</script>"),
    "program in a comment": ("<script><!--\nprice = 4\n//--></script>", "<script><!--\nprice = 5\n//--></script>"),
    "comment in a field": ("<textarea><!-- 4 --></textarea>", "<textarea><!-- 5 --></textarea>"),
    "behind an instruction": ("<?x <!-- ><i class=a></i> -->", "<?x <!-- ><i class=b></i> -->"),
    "behind a declaration": ("<!x <!-- ><i class=a></i> -->", "<!x <!-- ><i class=b></i> -->"),
    "behind an end tag": ("</p <!-- ><i class=a></i> -->", "</p <!-- ><i class=b></i> -->"),
    "behind a quote": ("<p it's <!-- ><i class=a></i> -->", "<p it's <!-- ><i class=b></i> -->"),
    "behind no end tag": ("</ <!-- ><i class=a></i> -->", "</ <!-- ><i class=b></i> -->"),
    "comment in a value": ("<i title='> <!-- 4 -->'></i>", "<i title='> <!-- 5 -->'></i>"),
    "data of an element": ("<p data-lat=48.2></p>", "<p data-lat=47.1></p>"),
    "element of its own": ("<shop-map lat=48.2></shop-map>", "<shop-map lat=47.1></shop-map>"),
    "value of a framework": ("<p x-data='{n: 4}'></p>", "<p x-data='{n: 5}'></p>"),
    "description": ("<meta name=description content='tea'>", "<meta name=description content='cake'>"),
    "preview": ("<meta property=og:image content=/4.jpg>", "<meta property=og:image content=/5.jpg>"),
    "author": ("<meta name=DC.creator content='Ann'>", "<meta name=DC.creator content='Bob'>"),
}  # fmt: skip

#: What nobody can.
COMMENTS = [
    ("<!-- made in 3 ms -->", "<!-- made in 4 ms -->"),
    ("<!-- made in 3 ms -->", ""),
    ("tea<!--> <p>cake", "tea<!-- 4 --> <p>cake"),
    ("tea<!-- 4 --!> cake", "tea<!-- 5 --!> cake"),
    ("tea<!-- 4", "tea<!-- 5"),
]

#: Forty pages at /show?id=N that are alike but for one thing each.
FORMS: dict[str, Callable[[int], str]] = {
    "link": lambda n: f"<a href='/sheet?key={2000340117 + 6151 * n}'>Open the sheet</a>",
    "folder": lambda n: f"<a href='/sheets/{UUID(int=2**120 + 6151 * n)}'>Open the sheet</a>",
    "frame": lambda n: f"<iframe src='/sheet?key={2000340117 + 6151 * n}'></iframe>",
    "refresh": lambda n: f"<meta http-equiv=refresh content='300; url=/next/{n}'>",
    "form": lambda n: f"<form action='/buy/{n}' method=post><button>Buy</button></form>",
    "drawing": lambda n: f"<svg><a xlink:href='/sheet/{n}'><text>Open</text></a></svg>",
    "route": lambda n: f"<a href='/app#!/sheet/{n}'>Open</a>",
    "torrent": lambda n: f"<a href='magnet:?xt=urn:btih:{n:040x}'>Get it</a>",
    "component": lambda n: f"<shop-item number={n} price='{n}.50' text='{words(n, 5)}'></shop-item>",
    "state": lambda n: f"<div wire:snapshot='{{&quot;id&quot;:{n},&quot;text&quot;:&quot;{words(n, 4)}&quot;}}'></div>",
    "paper": lambda n: f"<meta name=citation_pdf_url content='/papers/{n}.pdf'>",
    "section": lambda n: f"<pre><![CDATA[{words(n, 50)}]]></pre>",
    "signs": lambda n: "".join("<td>✓<td>" if n >> bit & 1 else "<td><td>✓" for bit in range(6)),
    "classes": lambda n: "".join(f"<td class={'sold' if n >> bit & 1 else 'open'}>{bit}" for bit in range(6)),
}  # fmt: skip

#: What is read as XHTML, where a CDATA section is text.
XHTML = "application/xhtml+xml"


def statuses(*pages: str, paths: Iterable[str] = ()) -> list[str]:
    """The verdicts on pages that are met one after another, at paths or else at /show?id=N."""
    paths = paths or [f"show?id={number}" for number in range(len(pages))]
    with dedup.open("memory:") as kept:
        return [
            kept.add(path, html=page, url=f"http://shop.example/{path}").status
            for path, page in zip(paths, pages, strict=True)
        ]


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_what_can_be_seen_tells_pages_apart(pair: tuple[str, str]) -> None:
    pages = [f"{RECORD}<div>{part}</div>" for part in pair]
    assert statuses(*pages) == ["new", "new"]
    assert statuses(*reversed(pages)) == ["new", "new"]


@pytest.mark.parametrize("pair", COMMENTS)
def test_comments_do_not(pair: tuple[str, str]) -> None:
    assert statuses(*(f"{RECORD}<div>{part}" for part in pair)) == ["new", "duplicate"]


@pytest.mark.parametrize("other", ["show?id=7&sid=9f86d081884c7d65", "show?id=7&ref=home", "print/show?id=7"])
def test_at_addresses_of_one_page_equal_words_data_and_signs_are_enough(other: str) -> None:
    paths = "show?id=7", other
    assert statuses(f"{RECORD}<b class=a>Tea", f"{RECORD}<b class=b>TEA", paths=paths) == ["new", "duplicate"]
    assert statuses(f"{RECORD}<b>✓ tea", f"{RECORD}<b>✗ tea", paths=paths) == ["new", "new"]


@pytest.mark.parametrize("form", FORMS)
def test_forty_pages_that_differ_in_one_thing_are_forty_and_a_copy_of_one_is_dropped(form: str) -> None:
    pages = [RECORD + FORMS[form](n) for n in range(40)]
    assert statuses(*pages, pages[7]) == ["new"] * 40 + ["duplicate"]


def records() -> dict[str, Answer]:
    """A site of all forms of six pages, each form in a folder."""
    menu = "".join(f"<a href='/about/{n}'>{words(n, 2)}</a>" for n in range(8))
    links = "".join(f"<a href='/{form}/show?id={n}'>{form}</a>" for form in FORMS for n in range(6))
    pages = {"/": html(f"<title>Records</title><div>{menu}</div>{links}")}
    for n in range(8):
        pages[f"/about/{n}"] = html(f"<title>About</title><div>{menu}</div><p>{words(('about', n), 90)}")
    for form, part in FORMS.items():
        for n in range(6):
            body = f"<div>{menu}</div>{RECORD}{part(n)}"
            pages[f"/{form}/show?id={n}"] = html(body)
            if form == "section":
                body = f"<html xmlns='http://www.w3.org/1999/xhtml'><body>{body}</body></html>"
                pages[f"/{form}/show?id={n}"] = html(body, **{"Content-Type": XHTML})
    return pages


class Reader(Walker):
    """Follows the links of the front page alone."""

    def links(self, response: Any) -> list[str]:
        return super().links(response) if self.path(response) == "/" else []


def kept(done: Crawl) -> dict[str, int]:
    paths = [path for path in done.spider.judgements if "/show" in path]
    return {form: sum(path.startswith(f"/{form}/") for path in paths) for form in FORMS}


def test_a_crawl_keeps_them_all(crawl: Run) -> None:
    done = crawl(records(), Reader, DEDUP_CHROME=True, CONCURRENT_REQUESTS=8)
    assert kept(done) == dict.fromkeys(FORMS, 6)
