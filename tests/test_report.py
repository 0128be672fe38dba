"""`scrapy duplicates --html`: the report of a real crawl, opened in a real browser."""

import json
import os
import re
import signal
import sqlite3
from ast import literal_eval
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from random import Random
from typing import Any

import pytest
from playwright.sync_api import Browser, Error, Page, expect, sync_playwright
from scrapy.cmdline import execute

from dedup import SettingsError
from dedup.contrib.changes.file import Crawl as Made
from dedup.contrib.changes.file import History
from dedup.contrib.changes.report import changes_report
from dedup.droplog.course import Thresholds, read_steps, read_thresholds
from dedup.droplog.drops import Drops
from dedup.droplog.reader import Reader, find_logs
from dedup.filter.change import WORDS, Change, Said
from dedup.page.ignore import Ignore
from dedup.report import document
from dedup.report.document import Source, report
from dedup.report.file import MARK, check_target, write_report
from dedup.scrapy.commands.duplicates import run
from dedup.texts.texts import Text, stored
from tests.support import ROOT, slow
from tests.support.browser import ARGUMENTS, program
from tests.support.crawls import words
from tests.support.logs import HOSTILE, lines, record
from tests.support.processes import Forked, scrapy
from tests.support.serving import Answer, served
from tests.support.waiting import LIMIT, wait_until

expect.set_options(timeout=LIMIT * 1_000)  # a busy machine may take longer than five seconds

# --- A crawl ----------------------------------------------------------------------------------------


def copies() -> dict[str, str]:
    """A site of twelve texts, each with near-duplicates that differ in some words."""
    pages, links = dict[str, str](), []
    for text in range(12):
        for copy in range(1 + text % 4):
            name = f"page-{text}-{copy}.html"
            body = f"{words(text, 300)} {words((text, copy), 3 * copy)} end"
            pages[f"/{name}"] = f"<title>Page {text}</title><p>{body}</p>"
            links.append(f'<a href="{name}">{words(name, 3)}</a>')
    return pages | {"/": f"<title>Front</title><p>{words('front', 300)}</p>{' '.join(links)}"}


PAGES = copies()


@dataclass
class Crawl:
    """A crawl of a site that is still served."""

    log: Path
    url: str

    @property
    def records(self) -> list[dict[str, Any]]:
        return list(Reader().read([self.log]))


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawl]:
    """A crawl with DEDUP_KEEP_TEXT."""

    def answer(asked: BaseHTTPRequestHandler) -> Answer:
        page = PAGES.get(asked.path)
        return 200 if page else 404, [("Content-Type", "text/html")], (page or "").encode()

    with served(answer) as port:
        log = tmp_path_factory.mktemp("out", numbered=False) / "drops.jsonl"
        done = Crawl(log, f"http://127.0.0.1:{port}/")
        settings = {
            "DEDUP_INDEX": "memory:",
            "DEDUP_LOG": done.log,
            "DEDUP_KEEP_TEXT": 1,
            "DEDUP_CHROME": False,  # see tests.support.crawls.crawl
            "DOWNLOAD_DELAY": 0,
            "CONCURRENT_REQUESTS": 1,
        }
        ran = scrapy("crawl", "site", "-a", f"start={done.url}", **settings)
        assert ran.returncode == 0, ran.stderr
        assert len(done.records) == 18
        yield done


# --- The report in a browser --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser without a window."""
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=program(), args=ARGUMENTS)
        yield found
        found.close()


@dataclass
class Heard:
    """What a page has asked for or complained of."""

    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def listen(self, page: Page) -> None:
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: (self.complaints.append(dialog.message), dialog.dismiss()))


@pytest.fixture(scope="module")
def window(browser: Browser) -> tuple[Page, Heard]:
    """A page in which one report is opened after the other: to begin a new one takes a second."""
    page, heard = browser.new_page(viewport={"width": 1200, "height": 900}), Heard()
    heard.listen(page)
    return page, heard


@pytest.fixture
def unheard(window: tuple[Page, Heard]) -> Iterator[Page]:
    """The page, whatever it asks for or complains of."""
    page, heard = window
    yield page
    page.goto("about:blank")
    heard.requests.clear()
    heard.complaints.clear()


Open = Callable[..., Page]


@pytest.fixture
def opened(window: tuple[Page, Heard]) -> Iterator[Open]:
    """Opens a report; when the test is over, the report has asked for nothing and complained of nothing."""
    (page, heard), count = window, 0

    def look(path: Path, color_scheme: Any = "light") -> Page:
        nonlocal count
        count += 1
        page.emulate_media(color_scheme=color_scheme)
        page.goto(path.as_uri())
        expect(page.locator("#listed")).not_to_be_empty()
        return page

    yield look
    page.goto("about:blank")
    requests, complaints = [*heard.requests], [*heard.complaints]
    heard.requests.clear()
    heard.complaints.clear()
    assert [url for url in requests if not url.startswith("file:")] == []
    assert len(requests) == count
    assert complaints == []


@pytest.fixture(scope="module")
def real(crawl: Crawl) -> Path:
    """The report of the crawl."""
    path = crawl.log.with_name("report.html")
    done = scrapy("duplicates", crawl.log, "--html", path)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{path}: open it in a browser\n", "")
    return path


def made(folder: Path, *records: dict[str, Any], **source: Any) -> Path:
    """A report of records."""
    with Drops(records) as drops:
        known = {"logs": ["drops.jsonl"], "read": len(records)} | source
        write_report(folder / "report.html", report(drops, Source(**known)))
    return folder / "report.html"


def compare(page: Page) -> None:
    """Opens the first pair of the first cluster."""
    page.locator("details.cluster summary").first.click()
    page.locator("details.cluster button").first.click()


def slide(page: Page, name: str, value: int) -> None:
    """Moves a slider, and waits until it has been drawn."""
    page.locator(f"#{name}").evaluate(
        "(slider, value) => { slider.value = value; slider.dispatchEvent(new Event('input')); }", value
    )
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def test_the_summary_tells_what_the_log_and_the_crawl_tell(crawl: Crawl, real: Path, opened: Open) -> None:
    page = opened(real)
    records = crawl.records
    tiles = dict(
        zip(
            page.locator("#summary dt").all_inner_texts(),
            page.locator("#summary b").all_inner_texts(),
            strict=True,
        )
    )
    assert tiles["near-duplicates"] == "18"
    assert tiles["of the pages judged"] == f"{18 / 31:.1%}".replace("%", " %")
    assert tiles["kept pages matched"] == "9"
    assert tiles["links not followed"] == str(sum(each["links"] for each in records))
    assert tiles["downloaded anyway"] == f"{sum(each['bytes'] for each in records) / 1000:.1f} kB"
    assert page.title() == "drops.jsonl: near-duplicates"


def test_the_summary_of_an_archive_tells_of_no_downloads(tmp_path: Path, opened: Open) -> None:
    pages = (record(agrees=agrees, bytes=1_000) for agrees in (True, True, False, None))
    summary = opened(made(tmp_path, *pages)).locator("#summary").inner_text().replace("\n\n", "\n")
    assert "confirmed by the sites\n66.7 %\n2 of 3 name the kept page's URL as canonical" in summary
    assert "read anyway" in summary
    assert not any(words in summary for words in ("download", "followed"))


def test_charts_are_drawn_and_say_in_words_what_they_show(crawl: Crawl, real: Path, opened: Open) -> None:
    page = opened(real)
    for name in ("distance", "resemblance", "timeline"):
        chart = page.locator(f"#{name}-chart svg[role=img]")
        assert chart.locator("title").text_content()
        assert chart.locator("desc").text_content()
        assert all(box.bounding_box()["height"] >= 1 for box in chart.locator("rect").all())  # type: ignore[index]
    assert page.locator("#distance-chart .mark-text").text_content() == "k = 6"
    assert page.locator("#resemblance-chart .mark-text").text_content() == "at least 0.75"

    def table(name: str) -> list[list[str]]:
        page.locator(f"#{name}-table summary").click()
        rows = page.locator(f"#{name}-table tbody tr")
        expect(rows.first).to_be_visible()
        return [row.locator("td").all_inner_texts() for row in rows.all()]

    by_distance = {}
    for each in crawl.records:
        by_distance[each["distance"]] = by_distance.get(each["distance"], 0) + 1
    assert [[int(cell) for cell in row] for row in table("distance")] == [
        [distance, count, 0] for distance, count in sorted(by_distance.items())
    ]
    assert sum(int(row[1]) for row in table("resemblance")) == 18
    course = table("timeline")
    assert [sum(int(row[at]) for row in course) for at in (1, 2, 3)] == [31, 13, 18]


def test_sliders_tell_of_other_thresholds(crawl: Crawl, real: Path, opened: Open) -> None:
    page = opened(real)
    for k, hundredths in ((0, 75), (6, 95), (2, 96)):
        slide(page, "distance", k)
        slide(page, "resemblance", hundredths)
        some = [
            each
            for each in crawl.records
            if each["distance"] <= k and round(each["resemblance"] * 10_000) >= hundredths * 100
        ]
        links = sum(each["links"] for each in some)
        result = f"{len(some)} of 18 would have been dropped, {18 - len(some)} kept; "
        assert page.locator("#result").inner_text().startswith(result), (k, hundredths)
        assert f"{links} link" in page.locator("#result").inner_text()
        kept = len({each["duplicate_of"] for each in some})
        listed = f"{len(some)} near-duplicate{'' if len(some) == 1 else 's'} of {kept} kept page"
        assert page.locator("#listed").inner_text().startswith(listed)
        assert page.locator("#distance").get_attribute("aria-valuetext") == f"{k} bit{'s' if k != 1 else ''}"
    expect(page.locator("#spoken")).to_contain_text(result)  # for those who hear the page
    slide(page, "distance", 0)
    page.locator("#which").select_option("kept")
    apart = [each for each in crawl.records if each["distance"] > 0 or each["resemblance"] < 0.96]
    expect(page.locator("#listed")).to_have_text(re.compile(rf"^{len(apart)} near-duplicates? of "))
    page.locator("#reset").click()
    expect(page.locator("#listed")).to_have_text("0 near-duplicates of 0 kept pages")
    assert page.locator("#result").inner_text().startswith("18 of 18 ")


def test_clusters_are_folded_and_can_be_searched(crawl: Crawl, real: Path, opened: Open) -> None:
    page = opened(real)
    first = page.locator("details.cluster").first
    assert first.locator(".count").inner_text() == "3"
    assert page.locator("#list table").count() == 0
    first.locator("summary").click()
    of = first.locator("summary .url").inner_text()
    urls = first.locator("tbody a.url").all_inner_texts()
    assert sorted(urls) == sorted(each["url"] for each in crawl.records if each["duplicate_of"] == of)
    slide(page, "distance", 6)
    expect(first.locator("table")).to_be_visible()  # drawn anew, and still open
    first.locator("summary").click()
    expect(first.locator("table")).to_be_hidden()
    page.locator("#query").fill("PAGE-11-1")
    expect(page.locator("#listed")).to_have_text(re.compile("^1 near-duplicate of 1 kept page$"))


def test_two_pages_side_by_side_with_what_differs_marked(crawl: Crawl, real: Path, opened: Open) -> None:
    page = opened(real)
    page.locator("#order").select_option("doubt")
    compare(page)
    dialog = page.get_by_role("dialog", name="Two pages, taken for one")
    expect(dialog).to_be_visible()
    doubtful = min(crawl.records, key=lambda each: each["resemblance"])
    assert dialog.locator(".facts a").all_inner_texts()[:2] == [doubtful["duplicate_of"], doubtful["url"]]
    assert dialog.locator(".bits").first.locator("mark").count() == doubtful["distance"]
    old, new = (
        set(re.search(r"page-(\d+)-(\d+)", url).groups())  # type: ignore[union-attr]
        for url in (doubtful["duplicate_of"], doubtful["url"])
    )
    assert old & new
    # Word for word: with the folded runs opened, each side is the whole page.
    runs = dialog.locator("details.equal summary")
    for folded in runs.all():
        folded.click()
    expect(dialog.locator("details.equal p")).to_have_count(runs.count())
    for side, url in (("kept", doubtful["duplicate_of"]), ("dropped", doubtful["url"])):
        text = " ".join(
            dialog.locator(f".words tbody tr.equal p, .words td[data-page={side}]").all_text_contents()
        ).split()
        body = PAGES[url.removeprefix(crawl.url.rstrip("/"))]
        assert text == re.sub("<[^>]*>", " ", body).lower().split()
    marked = dialog.locator("ins").all_inner_texts()
    assert marked
    assert all(set(text.split()) <= set(body.split()) for text in marked)


def test_marked_chrome_is_grey_in_both_pages(tmp_path: Path, opened: Open) -> None:
    far = [f"word{number}" for number in range(100)]
    kept = Text(["home", "shop", "lamp", *far, "old", "foot"], [(0, 2), (104, 105)])
    dropped = Text(["extra", "home", "shop", "news", "lamp", *far, "foot", "new"], [(0, 4), (105, 107)])
    pair = record(rule="probe", gone=4, noise="seen 17 times")
    pages = {pair["url"]: dropped, pair["duplicate_of"]: kept}
    path = made(tmp_path, pair, has_texts=True, find=lambda url, simhash: pages[url])
    page = opened(path)
    compare(page)
    dialog = page.get_by_role("dialog", name="Two pages, taken for one")
    facts = dialog.locator(".facts")
    for fact in (
        "114 shingles: 110 match, 4 only here",
        "containment 0.9167",
        "what differs, 'seen 17 times'",
    ):
        expect(facts).to_contain_text(fact)
    expect(dialog.locator("#differences .note")).to_contain_text("Grey words are in menus")
    for side, tokens in (("kept", kept), ("dropped", dropped)):
        grey = " ".join(dialog.locator(f"td[data-page={side}] .chrome").all_text_contents()).split()
        wanted = [token for start, end in tokens.chrome for token in tokens.tokens[start:end]]
        assert grey == wanted
    dialog.locator("details.equal summary").click()
    assert dialog.locator("details.equal p .chrome").count() == 0


def test_data_in_scripts_is_a_block_of_its_own(tmp_path: Path, opened: Open) -> None:
    pair = record()
    same = [f"word{number}" for number in range(40)]
    pages = {
        pair["url"]: Text(same, data=["brass", "lamp", "12", "50"]),
        pair["duplicate_of"]: Text(same, data=["brass", "lantern", "12", "50"]),
    }
    path = made(tmp_path, pair, has_texts=True, find=lambda url, simhash: pages[url])
    page = opened(path)
    compare(page)
    expect(page.locator("#differences > .note")).to_contain_text("All of them are equal.")
    data = page.locator("#differences section")
    assert data.locator("h3").inner_text() == "Data in scripts and attributes"
    expect(data.locator(".note")).to_contain_text("They differ in 1 place.")
    sides = [data.locator(f"td[data-page={side}]").text_content() for side in ("kept", "dropped")]
    assert [str(side).split() for side in sides] == [
        ["brass", "lantern", "12", "50"],
        ["brass", "lamp", "12", "50"],
    ]
    assert [data.locator(mark).all_inner_texts() for mark in ("del", "ins")] == [["lantern"], ["lamp"]]


def test_everything_can_be_done_by_keyboard(real: Path, opened: Open) -> None:
    page = opened(real)

    def focused(attribute: str) -> Any:
        return page.evaluate(f"document.activeElement.{attribute}")

    page.keyboard.press("Tab")
    assert focused("className") == "skip"
    for _ in range(10):
        page.keyboard.press("Tab")
        if focused("id") == "resemblance":
            break
    lowest = float(page.locator("#resemblance-value").inner_text())
    page.keyboard.press("ArrowRight")
    expect(page.locator("#resemblance-value")).to_have_text(f"{lowest + 0.01:.2f}")
    page.locator("#order").focus()
    page.keyboard.press("Tab")
    assert focused("tagName") == "SUMMARY"
    page.keyboard.press("Enter")
    expect(page.locator("details.cluster table")).to_be_visible()
    for _ in range(10):
        page.keyboard.press("Tab")
        if focused("tagName") == "BUTTON":
            break
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    page.evaluate("document.querySelector('#steps').hidden = false")
    page.keyboard.press("n")
    assert focused("className") == "block"
    assert page.locator("#position").inner_text().startswith("1 of ")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    assert focused("tagName") == "BUTTON"  # where one was before


def test_those_who_hear_the_page_are_told_what_is_there(real: Path, opened: Open) -> None:
    page = opened(real)
    page.locator("details.cluster summary").first.click()
    page.locator("details.cluster[open] th").first.wait_for()
    spoken = page.locator("body").aria_snapshot()
    roles = ("heading", "slider", "img", "table", "searchbox", "combobox", "columnheader", "button", "main")
    assert all(re.search(rf"^\s*- '?{role}\b", spoken, re.MULTILINE) for role in roles), spoken
    assert page.locator("html").get_attribute("lang") == "en"
    assert page.locator("button, input, select").evaluate_all(
        "all => all.every((each) => each.hidden || each.innerText || each.labels?.length)"
    )


# --- Hostile logs -------------------------------------------------------------------------------------

_SCRIPTS = (
    "<script>window.pwned=1</script>", "</script><script>window.pwned=1</script>",
    "<!--<script>window.pwned=1", "--><img src=x onerror=window.pwned=1>",
    '"><img src=x onerror=window.pwned=1>', "'><svg onload=window.pwned=1>", "javascript:window.pwned=1",
    "JaVaScRiPt:window.pwned=1", " javascript:window.pwned=1", "java\tscript:window.pwned=1",
    "data:text/html,<script>window.pwned=1</script>", "vbscript:window.pwned=1",
    'http://x/" onmouseover=window.pwned=1 style=position:fixed;inset:0 "',
    "http://x/' autofocus onfocus='window.pwned=1", "<iframe srcdoc='<script>parent.pwned=1</script>'>",
    "<meta http-equiv=refresh content='0;url=http://127.0.0.1:1/'>",
    "<link rel=stylesheet href=http://127.0.0.1:1/>", "<base href=http://127.0.0.1:1/>",
    "<details open ontoggle=window.pwned=1>", "<style>@import 'http://127.0.0.1:1/'</style>",
    "</title><textarea autofocus onfocus=window.pwned=1>", "${window.pwned=1}",
    "{{constructor.constructor('window.pwned=1')()}}", "\u2028window.pwned=1//", HOSTILE,
)  # fmt: skip
PAYLOADS = [
    form % text
    for text in _SCRIPTS
    for form in ("%s", "http://host.example/?%s", "%s/&lt;b&gt;", "\\u003c%s")
]
PARTS = "script, style, img, iframe, svg [onload], meta, link, base, textarea, object, embed, form"


@pytest.mark.parametrize("payloads", [PAYLOADS[::5], slow(PAYLOADS)], ids=["some", "all"])
def test_no_log_and_no_text_is_more_than_text(payloads: list[str], tmp_path: Path, opened: Open) -> None:
    """Some: of each way to write them, in turn."""
    assert len(PAYLOADS) == 100
    plain = made(tmp_path, record())
    parts = opened(plain).locator(PARTS).count()
    hostile = [
        record(
            payload, payload + " ", referer=payload, simhash=payload, duplicate_of_simhash="0", rule=payload
        )
        for payload in payloads
    ]
    log = tmp_path / (PAYLOADS[0].replace("/", "") + ".jsonl")
    with Drops(Reader().read([_written(log, *hostile)])) as drops:
        source = Source([log.name, *payloads], len(payloads), PAYLOADS[1], find=_echo, has_texts=True)
        write_report(tmp_path / "report.html", report(drops, source))
    page = opened(tmp_path / "report.html")
    assert page.evaluate(OPEN_ALL) == len(payloads)
    assert page.locator(PARTS).count() == parts
    assert page.evaluate("window.pwned") is None
    assert page.url == (tmp_path / "report.html").as_uri()
    attributes = page.evaluate(
        "[...document.querySelectorAll('*')].flatMap((each) => [...each.attributes]).map((each) => each.name)"
    )
    assert not [name for name in attributes if name.startswith("on") or name == "srcdoc"]
    assert page.locator("[style]:not(input)").count() == 0
    links = page.evaluate(
        "[...document.querySelectorAll('a:not(.skip)')].map((a) => [new URL(a.href).protocol, a.rel])"
    )
    assert {tuple(link) for link in links} == {("http:", "noreferrer noopener")}
    shown = page.locator("body").inner_text()
    assert "<script>window.pwned=1</script>" in shown
    assert not re.search("[\u202e\u2028\x00-\x08\x9b]", shown)


#: Shows all there is to show; how many comparisons that was.
OPEN_ALL = """async () => {
  const drawn = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  const more = document.querySelector("#more");
  for (; !more.hidden; await drawn()) more.click();
  for (const each of document.querySelectorAll("details")) each.open = true;
  const isEmpty = (each) => !each.querySelector("button");
  await drawn();  // and on a busy machine again, until each has been told that it was opened
  for (let left = 600; left && [...document.querySelectorAll("details.cluster")].some(isEmpty); left--) await drawn();
  let count = 0;
  document.querySelector("main").hidden = true;  // or each dialog takes a layout of all
  for (const button of document.querySelectorAll("details.cluster button")) {
    button.click();
    for (const each of document.querySelectorAll("dialog details")) each.open = true;
    for (let wait = 0; wait < 100 && !document.querySelector("dialog[open] ins"); wait++)
      await new Promise((done) => setTimeout(done, wait));
    if (document.querySelector("dialog[open] ins")) count += 1;
    document.querySelector("#close").click();
  }
  document.querySelector("main").hidden = false;
  return count;
}"""


def _written(log: Path, *records: dict[str, Any]) -> Path:
    log.write_text(lines(*records))
    return log


def _echo(url: str, simhash: str) -> Text:
    """As words: the URL itself."""
    return Text(["same", url, "same"], data=["same", url])


INJECT = """(kind) => {
  window.violations = [];
  document.addEventListener("securitypolicyviolation", (event) => window.violations.push(event.effectiveDirective));
  const made = document.createElement(kind);
  try {
    if (kind === "script") made.append("window.pwned = 1");
    if (kind === "style") made.append("body { color: rgb(1, 2, 3) !important }");
    if (kind === "img") made.src = "http://127.0.0.1:9/x.png";
    if (kind === "iframe") made.src = "http://127.0.0.1:9/";
    document.body.append(made);
    if (kind === "div") made.innerHTML = "<b>x</b>";
  } catch (error) { window.violations.push(error.name); }
  const began = Date.now();
  const has_come = () => window.violations.length || window.pwned || Date.now() - began > 60000;
  const told = (done) => () => done([window.violations, window.pwned ?? 0]);
  const look = (done) => setTimeout(has_come() ? told(done) : () => look(done), 100);
  return new Promise(look);
}"""


def test_what_is_injected_does_not_run_or_load(real: Path, unheard: Page) -> None:
    page = unheard
    page.goto(real.as_uri())
    for kind in ("script", "style", "img", "iframe", "div"):
        violations, pwned = page.evaluate(INJECT, kind)
        assert violations, kind
        assert not pwned


# --- More drops than are listed -----------------------------------------------------------------------


def many(count: int, clusters: int) -> Iterator[dict[str, Any]]:
    """Records of a large crawl."""
    chance = Random(count)
    start = datetime(2026, 11, 21, tzinfo=UTC)
    for number in range(count):
        kept = min(chance.randrange(clusters), chance.randrange(clusters))
        yield record(
            f"http://{number % 300}.example/archive/{number}/page.html?session={number:x}",
            f"http://{kept % 300}.example/archive/{kept}/page.html",
            time=(start + timedelta(seconds=number)).isoformat(timespec="milliseconds"),
            distance=chance.randrange(7),
            resemblance=round(0.75 + 0.25 * chance.random(), 4),
        )


def test_of_many_drops_some_are_listed(tmp_path: Path, opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "MAX_PAIRS", 500)
    records = list(many(600, 400))
    page = opened(made(tmp_path, *records))
    assert page.locator("#result").inner_text().startswith("600 of 600 would have been dropped")
    said = page.locator("#sample").inner_text()
    assert "of all 600 near-duplicates" in said
    assert "Listed here are 500: the 250 least alike" in said
    expect(page.locator("#listed")).to_have_text(re.compile("^500 near-duplicates of "))
    page.locator("#more").click()
    assert page.locator("details.cluster").count() == 60
    assert (
        page.locator("details.cluster summary").nth(30).evaluate("(each) => each === document.activeElement")
    )
    with Drops(records) as drops:
        listed = {(pair["url"], pair["duplicate_of"]) for pair in drops.pairs(500)}
    doubtful = sorted(records, key=lambda each: each["resemblance"])[:240]
    assert listed >= {(each["url"], each["duplicate_of"]) for each in doubtful}


# --- The command ----------------------------------------------------------------------------------------


def test_a_log_without_its_course_gives_drops_only_and_says_so(tmp_path: Path, opened: Open) -> None:
    log = _written(tmp_path / "old.jsonl", record(), record(distance=5, action="mark"))
    done = scrapy("duplicates", log, "--html", tmp_path / "report.html", "--min-distance", 3)
    assert done.returncode == 0, done.stderr
    page = opened(tmp_path / "report.html")
    notes = page.locator("#notes").inner_text()
    assert notes.startswith("Of 2 records, only those with a distance of at least 3 are shown.")
    assert "The thresholds are not known" in notes
    assert page.locator("#result").inner_text().startswith("1 of 1 would have been marked")
    assert page.locator("svg .mark, svg .kept").count() == 0
    page.locator("details.cluster summary").click()
    page.get_by_role("button", name="Compare").click()
    assert "DEDUP_KEEP_TEXT = True" in page.locator("#differences").inner_text()


def test_the_farthest_values_are_drawn_too(tmp_path: Path, opened: Open) -> None:
    first = record(time="0001-01-01T00:00:00.000+00:00", distance=64, resemblance=0, links=1 << 32)
    last = record(time="9999-12-31T23:59:59.999+00:00", distance=0, resemblance=1, depth=1 << 32, tokens=0)
    del last["bytes"]
    page = opened(made(tmp_path, first, last))
    assert page.locator("#timeline-chart rect").count() == 2
    page.locator("#timeline-table summary").click()
    steps = page.locator("#timeline-table tbody tr")
    expect(steps.first).to_be_visible()
    assert steps.last.locator("td").all_inner_texts() == ["9969-03-31 00:00:00", "1"]
    assert page.locator("#distance").get_attribute("max") == "64"
    assert page.locator("#resemblance").get_attribute("min") == "0"
    assert "4,294,967,306 links" in page.locator("#result").inner_text()


def test_an_empty_log_gives_a_sentence(tmp_path: Path, opened: Open) -> None:
    page = opened(made(tmp_path))
    assert page.locator("main p:visible").all_inner_texts() == ["No page was a near-duplicate."]
    assert page.locator("svg:visible, input:visible").count() == 0


def noisy(number: int, noise: str, **changes: Any) -> dict[str, Any]:
    """A drop by noise, which shares nothing of its own with the kept page."""
    bare = {"own": 8, "matching": 0, "new": 8, "gone": 8, "rule": "probe", "noise": noise, "resemblance": 0}
    return record(f"http://a.example/news/{number}", **bare | changes)


def test_drops_by_noise_move_no_slider(tmp_path: Path, opened: Open) -> None:
    alike = record("http://a.example/x", gone=5)
    page = opened(made(tmp_path, alike, noisy(1, "visitor 7"), noisy(2, "visitor 9")))
    assert page.locator("#resemblance").get_attribute("min") == "91"
    assert page.locator("#result").inner_text().startswith("3 of 3 would have been dropped")
    assert "2 near-duplicates would be dropped by any thresholds" in page.locator("#stricter").inner_text()
    assert page.locator(".range").inner_text() == "up to 2 bits, containment from 0.92"
    page.locator("details.cluster summary").first.click()
    cells = page.locator("details.cluster tbody td:nth-child(3)").all_inner_texts()
    assert sorted(cells) == ["0.92", "noise", "noise"]


def test_noise_becomes_a_line_of_settings(tmp_path: Path, opened: Open) -> None:
    drops = [noisy(each, f"visitor {each}.000 /ad?{each} soup 12 /x 99") for each in range(3)]
    page = opened(made(tmp_path, *drops, noisy(9, "Käse (new)")))
    row = page.locator("#patterns tbody tr")
    assert row.locator("td").first.inner_text() == "http://a.example/news/*"
    assert row.locator("td").nth(1).inner_text() == "4"
    runs = [label.strip() for label in row.locator("label").all_inner_texts()]
    assert runs == ["visitor 0.000 (3)", "soup 12 (3)", "Käse (new) (1)"]
    for box in row.locator("input").all():
        box.check()
    row.locator("input").nth(1).uncheck()
    line = page.locator("#setting").inner_text()
    name, _, value = line.partition(" = ")
    assert name == "DEDUP_IGNORE_TEXT"
    read = Ignore((), literal_eval(value)).reader()
    text = "<p>Visitor 12.345 reads: käse (new) soup 12"
    assert re.sub(r"\s+", " ", read(text)) == "<p> reads: soup 12"


def test_hosts_are_sorted_and_lead_to_their_pages(tmp_path: Path, opened: Open) -> None:
    drops = [
        record(f"http://{host}/{n}", links=links)
        for host, links in (("b.example", 1), ("a.example", 9))
        for n in range(links % 8 + 1)
    ]
    page = opened(made(tmp_path, *drops))
    hosts = page.locator("#hosts tbody tr td:first-child")
    sorted_by = page.locator("#hosts th[aria-sort]")
    assert hosts.all_inner_texts() == ["a.example", "b.example"]
    for column, order, found in (
        ("Links", "descending", ["a.example", "b.example"]),
        ("Links", "ascending", ["b.example", "a.example"]),
        ("Host", "ascending", ["a.example", "b.example"]),
    ):
        page.locator("#hosts").get_by_role("button", name=column).click()
        assert (sorted_by.inner_text(), sorted_by.get_attribute("aria-sort")) == (column, order)
        assert hosts.all_inner_texts() == found
    hosts.last.locator("button").click()
    expect(page.locator("#listed")).to_have_text("2 near-duplicates of 1 kept page")


def test_without_scripts_there_is_a_sentence(real: Path, browser: Browser) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(real.as_uri())
    assert page.locator("main").is_hidden()
    assert "does not run scripts" in page.locator("noscript p").inner_text()
    context.close()


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("nowhere/report.html", "can't be written: there is no folder 'nowhere'; make it first"),
        ("pyproject.toml", "can't be replaced: it is not a report; name another file, or remove it"),
        ("docs", "can't be written: Is a directory"),
        ("docs/" + "x" * 300, "can't be written: File name too long"),
    ],
)
def test_a_target_that_can_t_be_is_refused_in_one_line(target: str, said: str) -> None:
    with pytest.raises(SettingsError) as refused:
        check_target(Path(target))
    assert str(refused.value) == f"'{target}' {said}"


def _follow(log: Path, report: Path) -> None:
    """A report five times in a second or two."""
    run.PAUSE = 0.3
    os.chdir(ROOT)
    execute(["scrapy", "duplicates", str(log), "--html", str(report), "--follow"])


#: Counts how often a page had the chance to renew itself.
TURNS = """window.turns = 0;
const interval = window.setInterval;
window.setInterval = (act, pause) => interval(() => { act(); window.turns += 1; }, pause);"""


def test_a_report_renews_itself(log: Path, browser: Browser) -> None:
    path, unheard = log.with_name("report.html"), browser.new_page()
    unheard.add_init_script(TURNS)
    following = Forked(_follow, log, path)
    try:
        wait_until(path.exists)
        unheard.goto(path.as_uri())
        drops = unheard.locator("#summary .tile b").first
        expect(drops).to_have_text("1")
        with log.open("a") as file:
            file.write(lines(record("http://a.example/another")))
        expect(drops).to_have_text("2")
        wait_until(lambda: is_chosen(unheard, "distance", 0))  # what was chosen is not lost
        with log.open("a") as file:
            file.write(lines(record("http://a.example/third")))
        wait_until(lambda: "third" in path.read_text())
        turns = unheard.evaluate("turns")
        wait_until(lambda: unheard.evaluate("turns") > turns + 2)
        expect(drops).to_have_text("2")
    finally:
        unheard.close()
        following.send(signal.SIGINT)
    assert following.wait(LIMIT) == 0
    assert '"renewed":0' in path.read_text()


def is_chosen(page: Page, name: str, value: int) -> bool:
    """Moves a slider; false if the page was just being renewed."""
    try:
        slide(page, name, value)
        return page.locator(f"#{name}").input_value() == str(value)
    except Error:
        return False


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of one record."""
    return _written(tmp_path / "drops.jsonl", record())


def test_a_report_takes_the_place_of_an_older_one(tmp_path: Path) -> None:
    path = made(tmp_path, record())
    assert MARK in path.read_text()[:1_024]
    check_target(path)
    made(tmp_path, record(), record())
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]
    assert oct(path.stat().st_mode)[-3:] == "644"
    path.write_text("mine")
    with pytest.raises(SettingsError, match="it is not a report"):
        write_report(path, "x")
    assert path.read_text() == "mine"


# --- Beside the log -------------------------------------------------------------------------------------


def test_the_course_of_a_crawl_is_written_beside_its_log(crawl: Crawl) -> None:
    course = Path(f"{crawl.log}.crawl")
    [used] = read_thresholds([course])
    assert used == Thresholds("simhash", 6, 0.75, "drop", None)
    steps = list(read_steps([course]))
    assert sum(step.pages for step in steps) == 31
    assert sum(step.duplicates for step in steps) == 18
    assert find_logs(f"{crawl.log}%(time)s") == [crawl.log]  # what is beside it is no log


def test_a_course_that_is_none_is_left_out(tmp_path: Path) -> None:
    course = tmp_path / "x.crawl"
    good = {"run": "a", "time": "2026-11-21T10:00:00+00:00", "pages": 5, "duplicates": 2}
    bad: list[Any] = [[], 1, "x", {}, good | {"pages": "x"}, good | {"time": "never"}, good | {"time": 7}]
    bad += [{"method": 1}, {"method": "x", "max_distance": 99, "min_resemblance": 0.5, "action": "drop"}]
    bad += [good | {"pages": float("inf")}, {"time": "x" * 9_999}, good | {"pages": -5, "duplicates": -1}]
    course.write_text("".join(json.dumps(each) + "\n" for each in [*bad, good]) + "torn {")
    steps = list(read_steps([course, tmp_path / "missing"]))
    assert [step[1:] for step in steps] == [(0, 0), (10, 3)]
    assert read_thresholds([course]) == []


def test_texts_are_found_by_url_and_simhash(tmp_path: Path) -> None:
    path = tmp_path / "x.texts"
    with History(path) as history:
        history.write("http://a/", "new", 1, "0f", Text(["one", "two"], data=["lamp", "12"]))
        history.pair("http://b/", "1f", Text(["nav", "one", "drei", "foot"], [(0, 1), (3, 4)]))
        history.pair("http://a/", "0f", None)
        history.write("http://long/", "new", 2, "2f", Text(["x" * 2_000_000]))
    with stored([tmp_path / "missing", tmp_path, path]) as find:
        assert find("http://a/", "0f")[:3] == (["one", "two"], [], ["lamp", "12"])
        assert find("http://b/", "1f")[:3] == (["nav", "one", "drei", "foot"], [(0, 1), (3, 4)], [])
        assert find("http://a/", "1f") is None  # it said something else by then
        assert find("http://long/", "2f") is None
    path.write_bytes(b"SQLite format 3\0" + b"\xff" * 5_000)
    with stored([path]) as find:
        assert find("http://a/", "0f") is None


def test_texts_stay_within_their_bound_and_pairs_stay_longest(tmp_path: Path) -> None:
    path, bound = tmp_path / "x.texts", 400_000
    chance = Random(1)
    with History(path, bound) as history:
        for page in range(800):
            text = [f"{chance.getrandbits(64):x}" for _ in range(100)]
            history.write(f"http://a/{page}", "new", page, str(page), Text(text))
            if page == 1:
                history.pair("http://a/0", "0", None)
                history.pair("http://a/1", "1", None)
    assert path.stat().st_size < 1.3 * bound
    with stored([path]) as find:
        found = [page for page in range(800) if find(f"http://a/{page}", str(page))]
    assert found[:2] == [0, 1]  # a pair
    assert found[-1] == 799
    assert 100 < len(found) < 600


def test_only_pages_that_may_make_a_pair_are_stored(crawl: Crawl) -> None:
    database = sqlite3.connect(f"{crawl.log}.texts")
    kept, paired = (database.execute("SELECT count(*), sum(paired) FROM texts")).fetchone()
    database.close()
    assert (kept, paired) == (31, 9 + 18)


# --- The report of changes --------------------------------------------------------------------------------


def test_the_report_of_changes_shows_each_with_its_word(tmp_path: Path, opened: Open) -> None:
    crawls = [Made(number, f"{number}" * 32, 1.0, 2.0, 1) for number in (1, 2)]
    said = [Said("<b>310", "285", "price", "crowns")]
    found = [
        Change(word, f"http://a/{word}", said if word == "changed" else (), "", False, 2) for word in WORDS
    ]
    path = tmp_path / "changes.html"
    write_report(path, changes_report(found, ["http://a/unseen"], crawls, 1))
    page = opened(path)
    badges = page.locator(".badge").all()
    assert [badge.inner_text() for badge in badges] == list(WORDS)
    assert all((box := badge.bounding_box()) and box["width"] > 40 for badge in badges)
    assert page.locator(".edits li").inner_text() == "price <b>310→285 crowns"
    page.locator("#summary button").last.click()
    assert page.locator("#list a").all_inner_texts() == ["http://a/unseen"]
