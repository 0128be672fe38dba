"""What is learned of hosts outlives a crawl: it is stored with the pages that taught it, never after them."""

import asyncio
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from dedup.errors import IndexUnavailableError
from dedup.fingerprint.chrome import KNOWN, Chrome
from dedup.fingerprint.detector import Detector
from dedup.fingerprint.evidence import Evidence
from dedup.fingerprint.fingerprint import Called
from dedup.fingerprint.shingles import Hashes
from dedup.index import Index, Verdict, open_index, weighing
from dedup.index import hosts as known_hosts
from dedup.index.entry import rare_keys
from dedup.index.hosts import Hosts
from dedup.index.local import sqlite
from dedup.scrapy.commands.index.check import print_findings
from dedup.scrapy.commands.index.exchange import export_pages, import_pages
from dedup.scrapy.commands.index.info import print_info
from dedup.settings import IndexSettings
from tests.support.coroutines import driven
from tests.support.fingerprints import Claim
from tests.support.processes import Forked
from tests.support.stores import PERSISTENT, RUN, in_file, opened_at
from tests.support.surveys import surveyed, unopened
from tests.support.waiting import LIMIT, until

DETECTOR = Detector()
MENU = "".join(f"<li>menu item {n} of this shop" for n in range(100))

HOST = "shop.example"
#: Marks a test of all stores.
EVERYWHERE = pytest.mark.parametrize("store", ["memory", "file", "redis"])


def product(number: int, host: str = HOST, words: int = 60) -> Claim:
    """A page of a shop: a large menu, and a few words of its own."""
    text = " ".join(f"fact{number}x{word}" for word in range(words))
    page = DETECTOR.fingerprint(f"<title>Product</title>{MENU}<p>{text}")
    url = f"http://{host}/{number}"
    return url, url, page


def main_of(claim: Claim) -> Hashes:
    """The shingles that tables count."""
    own = claim[2].own
    assert own is not None
    return own.main


def copy_of(number: int) -> Claim:
    """The same page elsewhere on its host."""
    url, _, page = product(number)
    return f"{url}/copy", f"{url}/copy", page


async def crawl(index: Index, claims: list[Claim]) -> list[Verdict]:
    """Claims pages, and confirms those that are new."""
    verdicts = []
    for claim in claims:
        verdicts.append(await index.claim(*claim))
        await index.confirm(claim[0])
    return verdicts


async def known(index: Index) -> dict[str, Chrome | None]:
    """The tables that are stored."""
    survey = await index.survey()
    assert survey is not None
    async with survey:
        return {name: table async for name, table in survey.hosts()}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "index.sqlite"


# --- From one crawl to the next --------------------------------------------------------------------------


@PERSISTENT
@driven
async def test_a_crawl_in_parts_gives_the_verdicts_of_one(address: str, namespace: str) -> None:
    """And with no chrome at all, or nothing learned, it would not."""
    claims = [make(number) for number in range(15) for make in (product, copy_of)]
    random.Random(3).shuffle(claims)
    async with opened_at("memory:", DETECTOR) as index:
        whole = await crawl(index, claims)
    parts = []
    for start in range(0, len(claims), 7):
        async with opened_at(address, DETECTOR, namespace=namespace, run=RUN) as index:
            parts += await crawl(index, claims[start : start + 7])
    assert parts == whole
    assert [verdict.evidence for verdict in parts] == [verdict.evidence for verdict in whole]
    assert [verdict.status for verdict in whole].count("new") == 15


@PERSISTENT
@driven
async def test_what_a_page_says_stays_its_own_though_its_date_changes(address: str, namespace: str) -> None:
    """A banner that comes to all pages later is learned all the same."""
    banner = " ".join(f"banner{n}" for n in range(60))

    def of(number: int, day: int) -> Claim:
        text = " ".join(f"fact{number}x{word}" for word in range(60))
        url = f"http://{HOST}/{number}"
        shown = f"<title>Product</title>{MENU}<p>{text}<p>day {day} of May {banner if day > 9 else ''}"
        return url, url, DETECTOR.fingerprint(shown)

    for day in range(7, 12):
        async with opened_at(address, DETECTOR, namespace=namespace) as index:
            verdicts = await crawl(index, [of(number, day) for number in range(KNOWN)])
            assert {verdict.status for verdict in verdicts} == {"new"}
            assert index.hosts
            own = len(index.hosts.part(of(3, day)[2], HOST).rare)
    assert 50 < own < 75


@PERSISTENT
@driven
async def test_what_a_page_was_called_is_filed(address: str, namespace: str) -> None:
    url, _, page = product(1)
    called = Called(names=7, place=2**64 - 1)
    async with opened_at(address, DETECTOR, namespace=namespace) as index:
        await crawl(index, [(url, url, replace(page, called=called))])
    async with opened_at(address, DETECTOR, namespace=namespace) as index:
        entry = await index.find(url)
    assert entry
    assert entry.called == called


@PERSISTENT
@driven
async def test_without_its_table_a_host_is_unknown(address: str, namespace: str) -> None:
    async with opened_at(address, DETECTOR, namespace=namespace, run=RUN, chrome=False) as index:
        verdicts = await crawl(index, [product(number, words=3) for number in range(KNOWN)])
        assert [verdict.status for verdict in verdicts].count("duplicate") == KNOWN - 1  # as it was once
    async with opened_at(address, DETECTOR, namespace=namespace, run=RUN) as index:
        near, equal = await crawl(index, [product(KNOWN, words=3), (*copy_of(0)[:2], product(0, words=3)[2])])
    assert (near.status, equal.status) == ("new", "duplicate")


@EVERYWHERE
@driven
async def test_among_candidates_those_come_first_that_share_the_rarest_shingle(
    address: str, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that few have to be compared: many may share one that was rare when they were filed."""
    monkeypatch.setattr(weighing, "MAX_BESIDE_RARE", 1)
    async with opened_at(address, DETECTOR, namespace=namespace) as index:
        await crawl(index, [product(number) for number in range(KNOWN)])
        assert index.hosts is not None
        url, _, page = product(20)
        part, last = index.hosts.part(page, HOST), product(20, words=61)[2]
        common, rarest, *others = rare_keys(part.keys, page.digest)
        assert len({common, rarest, *others} & {*index.hosts.part(last, HOST).keys}) == 4
        kept = await index.find(product(0)[0])
        assert kept is not None
        assert page.simhash is not None
        far = kept._replace(simhash=page.simhash ^ 2**64 - 1)
        for number in range(100, 130):
            sketch = index.hosts.part(product(number)[2], HOST).sketch
            rare = common, number, number, number
            await index.add([far._replace(page_id=f"{number}", digest=number, sketch=sketch, rare=rare)])
        rare = 20, rarest, 20, 20
        await index.add([far._replace(page_id=url, url=url, digest=20, sketch=part.sketch, rare=rare)])
        verdict = await index.claim("copy", f"{url}?print=1", last)
        assert (verdict.status, verdict.of, verdict.rule) == ("duplicate", url, "rare")
        few_are_compared = await index.claim("other", f"{url}1", product(21)[2])
        assert (few_are_compared.status, few_are_compared.crowded) == ("new", False)


@EVERYWHERE
@driven
async def test_a_new_page_tells_of_which_one_it_has_half_the_content(address: str, namespace: str) -> None:
    def edited(number: int) -> Claim:
        """The words of a product and as many new ones."""
        text = " ".join(f"fact{number}x{word}" for word in range(60))
        more = " ".join(f"new{number}x{word}" for word in range(30))
        url = f"http://{HOST}/edited/{number}/"
        return url, url, DETECTOR.fingerprint(f"<title>Product</title>{MENU}<p>{text} {more}")

    async with opened_at(address, DETECTOR, namespace=namespace) as index:
        verdicts = await crawl(index, [product(number) for number in range(KNOWN + 2)])
        (later,) = await crawl(index, [edited(KNOWN + 1)])
        far = await index.claim("far", f"http://{HOST}/far", DETECTOR.fingerprint("<p>other words " * 40))
    assert [verdict.near for verdict in verdicts[KNOWN:]] == [None, None], "all of their own is new"
    assert later.near is not None
    assert later.near.url == product(KNOWN + 1)[1]
    assert later.near.evidence is not None
    assert 0.5 <= later.near.evidence.share < 0.85
    assert far.near is None


def test_what_was_learned_is_remembered_for_so_many_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_hosts, "MAX_LEARNED", 3)
    hosts = Hosts(DETECTOR.sketcher, IndexSettings())
    url, _, page = product(1)
    for _ in range(KNOWN):
        hosts.learn_kept(page, url)
    doubtful = Evidence(matching=260, new=40, gone=0)
    for number in range(10):
        hosts.learn_dropped(page, url, f"kept {number}", doubtful)
    assert [*hosts._learned] == ["kept 7", "kept 8", "kept 9"]


# --- Stored with the pages ------------------------------------------------------------------------------


def file_products(path: Path) -> None:
    """Files products until it is killed; each host has a product in turn."""

    async def crawl() -> None:
        index = open_index(f"file:{path}", DETECTOR)
        for number in range(100_000):
            claim = product(number, f"{number % 3}.example", words=300)
            await index.claim(*claim)
            await index.confirm(claim[0])
            await asyncio.sleep(0)

    asyncio.run(crawl())


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_after_a_kill_no_table_is_older_than_the_pages(path: Path, seed: int) -> None:
    """Else the menu of a page that is filed would count as its own, and make duplicates of its neighbours."""
    process = Forked(file_products, path)
    process.wait(LIMIT, lambda: in_file(path) >= 3)
    process.wait(random.Random(seed).random())
    assert process.kill()
    pages, findings, tables = asyncio.run(_contents(path))
    assert findings == []
    assert set(tables) == {"0.example", "1.example", "2.example"}
    for host, table in tables.items():
        assert table
        assert table.pages >= sum(f"//{host}/" in url for url in pages) > 0


async def _contents(path: Path) -> tuple[list[str], object, dict[str, Chrome | None]]:
    async with unopened(f"file:{path}", DETECTOR) as index:
        pages, findings = await surveyed(index)
        return [entry.url for entry, _ in pages if entry], findings, await known(index)


@driven
async def test_what_was_learned_of_dropped_pages_is_saved_at_the_end(path: Path) -> None:
    async with opened_at(f"file:{path}", DETECTOR) as index:
        await crawl(index, [product(number) for number in range(KNOWN)])
        await until(lambda: in_file(path) == KNOWN)
        assert index.hosts is not None
        index.hosts.table(HOST).add(main_of(product(99)), kept=False)
        index.hosts.merge({HOST: index.hosts.table(HOST)})
        saved = index.hosts.table(HOST).to_bytes()
    async with unopened(f"file:{path}", DETECTOR) as index:
        (table,) = (await known(index)).values()
    assert table
    assert table.to_bytes() == saved


@driven
async def test_a_file_keeps_the_tables_saved_last(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "MAX_SAVED", 3)
    async with opened_at(f"file:{path}", DETECTOR) as index:
        for host in ("a", "b", "a", "c", "a", "d", "e"):
            await index.add_hosts({host: Chrome()})
    async with unopened(f"file:{path}", DETECTOR) as index:
        assert set(await known(index)) == {"a", "d", "e"}


@pytest.fixture
def hosts() -> Hosts:
    """Tables that are saved somewhere, from where nothing is loaded."""
    hosts = Hosts(DETECTOR.sketcher, IndexSettings())
    hosts.load = lambda name: None
    return hosts


def test_tables_that_could_not_be_saved_are_saved_the_next_time(hosts: Hosts) -> None:
    hosts.merge({"a": Chrome()})

    def fail() -> None:
        with hosts.saving() as tables:
            assert set(tables) == {"a"}
            hosts.merge({"b": Chrome()})
            raise IndexUnavailableError

    with pytest.raises(IndexUnavailableError):
        fail()
    with hosts.saving() as tables:
        assert set(tables) == {"a", "b"}
    with hosts.saving() as tables:
        assert tables == {}


def test_a_table_is_not_lost_while_it_is_saved(hosts: Hosts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dedup.index.hosts.MAX_HOSTS", 1)
    hosts.learn_kept(product(1)[2], product(1)[1])
    hosts.table("another host")  # of the two only this one is held
    with hosts.saving():
        hosts.table("another host")
        hosts.learn_kept(product(2)[2], product(2)[1])
    with hosts.saving() as tables:
        assert Chrome.from_bytes(tables[HOST]).pages == 2


def test_in_memory_nothing_is_held_to_be_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dedup.index.hosts.MAX_HOSTS", 3)
    index = open_index("memory:", DETECTOR)
    for number in range(10):
        asyncio.run(index.claim(*product(number, f"{number}.example")))
    assert index.hosts is not None
    with index.hosts.saving() as tables:
        assert tables == {}


# --- Damaged tables -------------------------------------------------------------------------------------

DAMAGES = {
    "a bit": "UPDATE hosts SET checksum = x'00'",
    "no bytes": "UPDATE hosts SET chrome = x''",
    "a number": "UPDATE hosts SET chrome = 7",
    "another host's": "UPDATE hosts SET name = 'other.example'",
    "a name of bytes": "UPDATE hosts SET name = x'ff'",
    "a name that is not UTF-8": "UPDATE hosts SET name = CAST(x'ff' AS TEXT)",
}


@pytest.fixture(params=[*DAMAGES, "too short, with its checksum", "not packed, with its checksum"])
def damaged(request: pytest.FixtureRequest, path: Path) -> Path:
    """A file that knows one host, whose table is damaged."""

    async def fill() -> None:
        async with opened_at(f"file:{path}", DETECTOR) as index:
            await crawl(index, [product(number) for number in range(3)])

    asyncio.run(fill())
    with closing(sqlite3.connect(path)) as connection, connection:
        if request.param in DAMAGES:
            connection.execute(DAMAGES[request.param])
        else:
            octets = sqlite.packed(b"short") if "short" in request.param else b"not packed"
            connection.execute(
                "UPDATE hosts SET chrome = ?, checksum = ?", (octets, sqlite.checksum((HOST, octets)))
            )
    return path


def test_a_damaged_table_is_named_left_out_and_learned_anew(
    damaged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = damaged.read_bytes()
    assert asyncio.run(print_findings(open_index(f"file:{damaged}", DETECTOR))) == 5
    shown = capsys.readouterr().out
    assert "damaged tables of hosts: 1\n" in shown
    assert "nothing has to be done" in shown
    assert asyncio.run(export_pages(open_index(f"file:{damaged}", DETECTOR), str(tmp_path / "x"))) == 5
    assert "exported 3 pages of " in (shown := capsys.readouterr().err)
    assert shown.endswith(", left out 1 damaged table of hosts\n")
    assert damaged.read_bytes() == before

    async def again() -> tuple[list[Verdict], Chrome | None]:
        async with opened_at(f"file:{damaged}", DETECTOR) as index:
            verdicts = await crawl(index, [product(number) for number in range(20, 20 + KNOWN)])
        async with unopened(f"file:{damaged}", DETECTOR) as index:
            return verdicts, (await known(index))[HOST]

    verdicts, table = asyncio.run(again())
    assert {verdict.status for verdict in verdicts} == {"new"}
    assert table
    assert table.pages == KNOWN


# --- The commands ---------------------------------------------------------------------------------------


@pytest.fixture
def make(path: Path) -> Callable[[], Index]:
    """Makes the index of a file that knows two hosts."""

    async def fill() -> None:
        async with opened_at(f"file:{path}", DETECTOR) as index:
            await crawl(index, [product(number) for number in range(KNOWN)])
            await crawl(index, [product(99, "other.example")])

    asyncio.run(fill())
    return lambda: open_index(f"file:{path}", DETECTOR)


def test_info_tells_the_known_hosts(make: Callable[[], Index], capsys: pytest.CaptureFixture[str]) -> None:
    assert asyncio.run(print_info(make())) == 0
    assert "\n  hosts       2, 1 of them with 8 kept pages or more\n" in capsys.readouterr().out


def test_an_export_carries_the_tables_and_an_import_merges_them(
    make: Callable[[], Index], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def other() -> Index:
        return open_index(f"file:{tmp_path / 'other'}", DETECTOR)

    async def tables(index: Index) -> dict[str, bytes]:
        return {name: table.to_bytes() for name, table in (await known(index)).items() if table}

    export = tmp_path / "pages.jsonl"
    assert asyncio.run(export_pages(make(), str(export))) == 0
    for _ in range(2):  # the second one changes nothing
        assert asyncio.run(import_pages(other(), str(export))) == 0
        assert asyncio.run(tables(other())) == asyncio.run(tables(make()))
    shown = capsys.readouterr()
    assert shown.err == f"exported 9 pages and 2 hosts of {make().where}\n"
    assert shown.out.startswith(f"imported 9 pages and 2 hosts into {other().where}\n")

    async def merge() -> dict[str, Chrome | None]:
        async with opened_at(f"file:{tmp_path / 'other'}", DETECTOR) as index:
            fresh = Chrome()
            for number in range(20):
                fresh.add(main_of(product(number)))
            await index.add_hosts({HOST: fresh, "third.example": Chrome()})
        async with unopened(f"file:{tmp_path / 'other'}", DETECTOR) as index:
            return await known(index)

    merged = asyncio.run(merge())
    assert {name: table and table.pages for name, table in merged.items()} == {
        HOST: 20,
        "other.example": 1,
        "third.example": 0,
    }


def test_to_forget_pages_leaves_the_tables(make: Callable[[], Index], path: Path) -> None:
    async def forget() -> dict[str, Chrome | None]:
        async with opened_at(f"file:{path}", DETECTOR) as index:
            assert await index.forget([product(number)[0] for number in range(KNOWN)]) == KNOWN
        async with unopened(f"file:{path}", DETECTOR) as index:
            return await known(index)

    table = asyncio.run(forget())[HOST]
    assert table
    assert table.pages == KNOWN


@pytest.mark.parametrize("store", ["memory"])
@pytest.mark.parametrize(
    ("known_pages", "counted"), [(10, False), (200, True)], ids=["its table is older", "counted"]
)
@driven
async def test_a_new_section_costs_some_pages_not_all(address: str, known_pages: int, counted: bool) -> None:
    def article(number: int) -> Claim:
        sidebar = "".join(f"<li>entry {n} in the annex" for n in range(150))
        text = " ".join(f"note{number}x{word}" for word in range(60))
        url = f"http://{HOST}/annex/{number}"
        return url, url, DETECTOR.fingerprint(f"<title>Annex</title>{sidebar}<p>{text}")

    async with opened_at(address, DETECTOR) as index:
        assert index.hosts is not None
        table = index.hosts.table(HOST)
        for number in range(known_pages):
            table.add(main_of(product(number)))
        before = table.to_bytes()
        await crawl(index, [article(0)])
        if not counted:  # as after a loss
            index.hosts._tables[HOST] = Chrome.from_bytes(before)
        verdicts = await crawl(index, [article(number) for number in range(1, 46)])
    assert [verdict.status for verdict in verdicts].count("duplicate") <= 25
    assert {verdict.status for verdict in verdicts[-20:]} == {"new"}
