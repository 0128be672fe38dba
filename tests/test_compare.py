"""`scrapy compare`: what it says of two pages, and its exit status."""

import asyncio
import re
import subprocess
from pathlib import Path

import pytest

from crawler.demo import Site, serve
from dedup import Detector, open_index
from dedup.page.charset import decode
from dedup.page.read import read
from dedup.scrapy.commands.fetch import read_page
from tests.support.crawls import Site as Web
from tests.support.crawls import html
from tests.support.crawls import site as web  # noqa: F401
from tests.support.processes import scrapy


def compare(*arguments: object) -> subprocess.CompletedProcess[str]:
    """`scrapy compare` in the project."""
    return scrapy("compare", *arguments)


def told(output: str) -> dict[str, str]:
    """What it says, by the name that a line begins with."""
    return {line[:12].strip(): line[13:] for line in output.splitlines()}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some pages of the demo site, as files."""
    folder = tmp_path_factory.mktemp("site")
    for name, path in (
        ("article", "/articles/the-fog-signal"),
        ("print", "/print/the-fog-signal"),
        ("shop", "/shop/"),
    ):
        (folder / name).write_bytes(Site().render(path, 1)[2])
    (folder / "short").write_text("<p>Not found")
    more = "".join(f" and {number}" for number in range(20))
    (folder / "long").write_text((folder / "article").read_text().replace("</footer>", f"{more}</footer>"))
    (folder / "binary").write_bytes(bytes(999))
    return folder


def test_near_duplicates_end_with_status_0(site: Path) -> None:
    done = compare(site / "article", site / "print")
    assert done.returncode == 0, done.stderr
    assert "near-duplicates: nearly all that is own to each of them is on the other" in done.stdout
    distance = int(done.stdout.split(" bits (near: up to 6)")[0].split()[-1])
    assert done.stdout.count("^") == distance


def test_other_pages_end_with_status_1_and_the_rule_that_decides(site: Path) -> None:
    done = compare(site / "article", site / "shop")
    assert done.returncode == 1
    assert "different: " in done.stdout
    assert "only in A" in done.stdout


def runs(tokens: list[str], size: int) -> set[tuple[str, ...]]:
    """The shingles of a page, in plain Python."""
    return {tuple(tokens[start : start + size]) for start in range(len(tokens) - size + 1)}


def test_every_measure_has_its_line(site: Path) -> None:
    said = compare(site / "article", site / "long").stdout
    names = ["resemblance", "containment"]
    lines = told(said)
    assert [name for name in lines if name in names] == names
    figures = {name: [float(figure) for figure in re.findall(r"\d\.\d{4}", lines[name])] for name in names}

    sources = [read_page(str(site / name)) for name in ("article", "long")]
    pages = [read(decode(source), url) for source, url in sources]
    a, b = (runs(page.tokens, 6) for page in pages)
    assert figures["resemblance"][1] == round(len(a & b) / len(a | b), 4) < 1
    assert figures["containment"] == [round(len(a & b) / len(some), 4) for some in (a, b)]


def test_the_settings_decide(site: Path) -> None:
    pair = site / "article", site / "print"
    done = compare(*pair, "-s", "DEDUP_CHROME=False", "-s", "DEDUP_MIN_RESEMBLANCE=1")
    assert done.returncode == 1
    assert "too few shingles in common" in done.stdout
    done = compare(*pair, "-s", "DEDUP_MIN_CONTAINMENT=1")
    assert done.returncode == 1
    assert "of what is own to one of them is on the other" in done.stdout


@pytest.mark.parametrize(("name", "reason"), [("short", "short"), ("binary", "binary")])
def test_a_page_that_cannot_be_judged_says_why(site: Path, name: str, reason: str) -> None:
    done = compare(site / name, site / name)
    assert done.returncode == 1
    assert f"can't be judged: {reason}" in done.stdout


def test_a_page_may_be_a_url(site: Path) -> None:
    with serve(Site()) as url:
        page = f"{url}articles/the-fog-signal"
        done, mirror = compare(page, page), compare(page, f"{url}mirror/articles/the-fog-signal")
    assert done.returncode == 0, done.stdout
    assert mirror.returncode == 1, "no crawl has seen that this folder holds copies"
    assert "their addresses name two pages" in mirror.stdout


@pytest.mark.parametrize("wrong", ["nowhere.html", "ftp://example.org/", "x" * 5000, "http://127.0.0.1:1/"])
def test_a_page_that_cannot_be_read_is_named(site: Path, wrong: str) -> None:
    done = compare(site / "article", wrong)
    assert done.returncode == 2
    assert (done.stdout, done.stderr.count("\n")) == ("", 1)
    assert wrong[:50] in done.stderr


def test_two_pages_are_wanted() -> None:
    assert compare("one.html").returncode == 2


def product(number: int, heading: str, own: int) -> str:
    """A page of a shop in 400 words of menu and footer."""
    menu, footer = (" ".join(f"{part}{word}" for word in range(200)) for part in ("menu", "footer"))
    text = " ".join(f"fact{number}x{word}" for word in range(own))
    return (
        f"<title>{heading}</title><nav>{menu}</nav><h1>{heading}</h1><p>{text}</p><footer>{footer}</footer>"
    )


def test_what_is_the_pages_own_decides_between_pages_in_one_chrome(tmp_path: Path) -> None:
    for number, heading in enumerate(("Brass lantern", "Wool jumper")):
        (tmp_path / f"{number}.html").write_text(product(number, heading, 30))
    pair = (tmp_path / "0.html", tmp_path / "1.html")
    done = compare(*pair)
    assert done.returncode == 1
    lines = told(done.stdout)
    assert lines["chrome A"].startswith("400 of 434 tokens in menus")
    assert "heading 'brass lantern brass lantern'" in lines["called A"]
    assert re.match(r"\d of the \d+ shingles that are A's own are on B, too", lines["own"])
    assert lines["verdict"].startswith("different: fewer than 8 of their own shingles match")
    assert lines["markup"].startswith("different")
    assert lines["host"].startswith("nothing is known of the host: --index ADDRESS asks")
    without = compare(*pair, "-s", "DEDUP_CHROME=False")
    assert without.returncode == 0
    assert not re.search("^own ", without.stdout, re.MULTILINE)


def test_of_pages_of_the_same_words_it_shows_where_their_markup_begins_to_differ(tmp_path: Path) -> None:
    for name in ("open", "closed"):
        page = product(1, "Brass lantern", 30).replace("<h1>", f"<!-- {name} --><h1 class={name}>")
        (tmp_path / f"{name}.html").write_text(page)
    lines = told(compare(tmp_path / "open.html", tmp_path / "closed.html").stdout)
    assert lines["markup A"].startswith("... ")
    assert "</nav><h1 class=open>Brass" in lines["markup A"]
    assert "</nav><h1 class=closed>Brass" in lines["markup B"]
    assert lines["verdict"] == "near-duplicates: their words are equal"
    same = told(compare(tmp_path / "open.html", tmp_path / "open.html").stdout)
    assert "markup A" not in same
    assert same["verdict"] == "near-duplicates: they are equal"


def stall(number: int, count: int = 0) -> str:
    """A page in 1,500 words of menu that nothing marks as one."""
    menu = " ".join(f"menu{word}" for word in range(1500))
    text = " ".join(f"fact{number}x{word}" for word in range(40))
    return f"<title>Stall</title><div>{menu}</div><p>{text}</p><p>{count} visitors</p>"


def filled(address: str, url: str, number: int) -> None:
    """Files some stalls in an index, as a crawl does."""

    async def fill() -> None:
        index = open_index(address, Detector())
        for at in range(number):
            place = f"{url}/{at}"
            await index.claim(place, place, index.detector.fingerprint(stall(at), place))
            await index.confirm(place)
        await index.close()

    asyncio.run(fill())


def test_an_index_tells_what_is_chrome_of_the_host(tmp_path: Path, web: Web) -> None:  # noqa: F811
    for path, body in (("/0", stall(0)), ("/0?ref=other", stall(1)), ("/0?ref=copy", stall(0, 9))):
        web.pages[path] = html(body)
    a, other, copy = (f"{web.url}/{at}" for at in ("0", "0?ref=other", "0?ref=copy"))
    known, new = (f"file:{tmp_path}/{name}" for name in ("known", "new"))
    filled(known, web.url, 12)
    filled(new, web.url, 3)

    assert told(compare(a, other).stdout)["verdict"].startswith("near-duplicates")
    done = compare(a, other, "--index", known)
    lines = told(done.stdout)
    assert done.returncode == 1, done.stderr
    assert lines["host"].endswith(f" knows 12 kept pages of {web.url.removeprefix('http://')}")
    assert re.match(r"0 of the [2-5]\d shingles that are A's own are on B, too", lines["own"])
    assert lines["verdict"].endswith("fewer than 8 of their own shingles match")
    assert compare(a, copy, "--index", known).returncode == 0

    young = told(compare(a, copy, "--index", new).stdout)
    assert young["host"].endswith(f" knows 3 kept pages of {web.url.removeprefix('http://')}")
    assert "fewer than 8 kept pages of the host are known" in young["verdict"]


def test_a_file_has_no_host_of_which_an_index_could_know(site: Path, tmp_path: Path) -> None:
    filled(f"file:{tmp_path}/index", "http://shop.example", 1)
    done = compare(site / "article", site / "print", "--index", f"file:{tmp_path}/index")
    assert told(done.stdout)["host"] == f"file:{tmp_path}/index knows nothing of files, which have no host"


def test_an_index_that_cannot_be_asked_is_named(site: Path, tmp_path: Path) -> None:
    pair = (site / "article", site / "print")
    missing = compare(*pair, "--index", f"file:{tmp_path}/missing")
    assert (missing.returncode, missing.stdout, missing.stderr.count("\n")) == (3, "", 1)
    assert compare(*pair, "--index", "memory:").returncode == 2
    assert compare(*pair, "--spider", "site").returncode == 2


def test_data_in_scripts_is_a_part_of_its_own(site: Path, tmp_path: Path) -> None:
    def drawn(name: str) -> str:
        data = f'{{"product": {{"name": "{name}", "price": 12}}, "csrfToken": "x"}}'
        script = f'<script type="application/json">{data}</script>'
        return (site / "article").read_text().replace("</body>", f"{script}</body>")

    for name in ("lamp", "lantern"):
        (tmp_path / name).write_text(drawn(f"Brass {name}"))
    lines = told(compare(tmp_path / "lamp", tmp_path / "lantern").stdout)
    assert lines["data A"] == lines["data B"] == "3 tokens in scripts and attributes, without nonces"
    assert (lines["A's data"], lines["B's data"]) == ("lamp", "lantern")
    assert "data A" not in told(compare(site / "article", site / "print").stdout)
