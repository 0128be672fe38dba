"""Index files that are damaged, cut, mixed up, of another format, or no index at all.

Each is refused with a line that names it, and left byte for byte; or it opens and answers rightly.  A page
may be forgotten by a damage, which costs a download; none is dropped, or named, wrongly.  The row of a page is checked
when it is read: then a claim is refused, or the page counts as absent.
"""

import asyncio
import gzip
import json
import os
import random
import re
import struct
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from dedup.errors import DedupError, IndexCorruptError, IndexMismatchError
from dedup.index import Index, Verdict
from dedup.index.local.file import LAYOUT
from tests.support import slow
from tests.support.coroutines import driven
from tests.support.fingerprints import Claim, fingerprint_of
from tests.support.stores import change, fill, index_in, opened_at, pages, try_to_open, twin_of, until_written

FILED = [(f"{name} of the index", url, page) for name, url, page in pages(60)]
STRANGERS = pages(60, "stranger", seed=2)
#: Of another index of ours, whose log is found beside this one's file.
FOREIGN_PAGES = pages(60, "foreign", seed=3)
PAGE = 4096
#: Nothing takes longer than this, in seconds.
LIMIT = 10

Files = dict[str, bytes]  # by what comes after the name: "", "-wal", "-shm"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where there is no index yet."""
    return tmp_path / "index.sqlite"


@pytest.fixture
def filled(path: Path, closed: Files) -> Path:
    """An index."""
    put(path, closed)
    return path


def take(path: Path) -> Files:
    """What is there of an index."""
    found = {end: path.with_name(path.name + end) for end in ("", "-wal", "-shm")}
    return {end: file.read_bytes() for end, file in found.items() if file.exists()}


def put(path: Path, files: Files) -> None:
    """Puts it there."""
    for end, content in files.items():
        path.with_name(path.name + end).write_bytes(content)


async def use(index: Index, filed: dict[str, Claim]) -> None:
    """Asks of every page; asserts that nothing is dropped or named wrongly."""
    beyond = 0b1111 << 30  # one bit more than may differ
    for claim, stranger in zip(FILED, STRANGERS, strict=True):
        page_id, url, fingerprint = claim
        with suppress(DedupError):
            entry = await index.find(page_id)
            assert entry is None or filed[entry.page_id] == (page_id, url, fingerprint)
        with suppress(DedupError):
            near = f"near to {page_id}", url, fingerprint_of(fingerprint.simhash ^ beyond)
            assert (await index.claim(*near)).status == "new"
            await index.release(near[0])
        with suppress(DedupError):
            assert (await index.claim(*stranger)).status == "new"
            await index.release(stranger[0])
        with suppress(DedupError):
            twin = await index.claim(*twin_of(claim))
            assert twin in (
                Verdict("new"),
                Verdict("duplicate", url, 0, 1.0, of_simhash=fingerprint.simhash, rule="exact"),
            )
            await index.release(twin_of(claim)[0])
        with suppress(DedupError):
            assert (await index.claim(*claim)).status in {"new", "same"}


def refused(path: Path, refusal: DedupError) -> str:
    """A refusal, if it is as it should be."""
    assert refusal.exit_status in {3, 4, 5}
    assert str(path) in str(refusal)
    assert "\n" not in str(refusal)
    return f"refused with {refusal.exit_status}"


def examine(path: Path, files: Files) -> tuple[str, int]:
    """Uses damaged files like any others; "refused" or "opened", and how many pages were left.

    Raises what is not an error of ours.
    """

    async def run() -> tuple[str, int]:
        index = index_in(path)
        try:
            await index.open()
        except DedupError as refusal:
            return refused(path, refusal), 0
        try:
            left = await index.count()
            await use(index, {claim[0]: claim for claim in (*FILED, *FOREIGN_PAGES)})
        finally:
            with suppress(DedupError):
                await index.close()
        return "opened", left

    put(path, files)
    started = time.process_time()
    outcome, left = asyncio.run(run())
    assert time.process_time() - started < LIMIT
    if outcome != "opened":
        kept = take(path)
        assert all(kept[end] == content for end, content in files.items() if end != "-shm")
    return outcome, left


# --- Any damage at all --------------------------------------------------------------------------------


def bit(content: bytes, rng: random.Random, start: int = 0, end: int | None = None) -> bytes:
    """One bit flipped."""
    damaged = bytearray(content)
    damaged[rng.randrange(start, end or len(content))] ^= 1 << rng.randrange(8)
    return bytes(damaged)


def noise(content: bytes, rng: random.Random, size: int, fill: bytes | None = None) -> bytes:
    """Some bytes replaced; of whole pages where the size is one's."""
    start = rng.randrange(len(content) - size + 1)
    start -= start % size if size == PAGE else 0
    return content[:start] + (fill or rng.randbytes(size)) + content[start + size :]


def swapped(content: bytes, rng: random.Random) -> bytes:
    """Two pages of the file in each other's place."""
    parts = [content[at : at + PAGE] for at in range(0, len(content), PAGE)]
    a, b = rng.sample(range(len(parts)), 2)
    parts[a], parts[b] = parts[b], parts[a]
    return b"".join(parts)


def repeated(content: bytes, rng: random.Random) -> bytes:
    """A page of the file once more, over another."""
    start = rng.randrange(len(content) // PAGE) * PAGE
    return noise(content, rng, PAGE, content[start : start + PAGE])


def cut(content: bytes, rng: random.Random, size: int = 1) -> bytes:
    """The end is missing."""
    return content[: rng.randrange(len(content) // size) * size]


def of_format(content: bytes, number: int) -> bytes:
    """With another user_version, byte 60 of the header of SQLite."""
    return content[:60] + struct.pack(">i", number) + content[64:]


OF_THE_FILE: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "a bit": bit,
    "a bit of the header": lambda content, rng: bit(content, rng, 0, 100),
    "a bit of the rows": lambda content, rng: bit(content, rng, 3 * PAGE),
    "a byte": lambda content, rng: noise(content, rng, 1),
    "16 bytes": lambda content, rng: noise(content, rng, 16),
    "a page of noise": lambda content, rng: noise(content, rng, PAGE),
    "a page of zeros": lambda content, rng: noise(content, rng, PAGE, bytes(PAGE)),
    "two pages swapped": swapped,
    "a page twice": repeated,
    "cut": cut,
    "cut after a page": lambda content, rng: cut(content, rng, PAGE),
    "more than all": lambda content, rng: content + rng.randbytes(PAGE * rng.randrange(1, 4)),
    "another magic": lambda content, rng: rng.randbytes(16) + content[16:],
    "an older format": lambda content, rng: of_format(content, rng.randrange(LAYOUT)),
    "a newer format": lambda content, rng: of_format(content, rng.randrange(LAYOUT + 1, 2**31)),
}
OF_THE_LOG: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "a bit of the log": bit,
    "16 bytes of the log": lambda content, rng: noise(content, rng, 16),
    "the log cut": cut,
    "zeros in the log": lambda content, rng: noise(content, rng, 512, bytes(512)),
}


@pytest.fixture(params=[30, slow(2_000)])
def trials(request: pytest.FixtureRequest) -> int:
    """How many files are damaged."""
    return int(request.param)


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """An index that was closed in good order."""
    path = tmp_path_factory.mktemp("closed") / "index.sqlite"
    asyncio.run(fill(path, FILED))
    return take(path)


async def log_of(path: Path, claims: list[Claim], part: int) -> Files:
    """An index as a kill leaves it: so many of its pages in the file, the others in its log only."""
    await fill(path, claims[:part])
    index = index_in(path)
    for claim in claims[part:]:
        await index.claim(*claim)
        await index.confirm(claim[0])
    await until_written(path, len(claims))
    files = take(path)
    await index.close()
    return files


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """An index of which one half is in the log."""
    files = asyncio.run(log_of(tmp_path_factory.mktemp("killed") / "index.sqlite", FILED, 30))
    assert len(files["-wal"]) > 5 * PAGE
    return files


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """Another index of ours, all of it in its log."""
    return asyncio.run(log_of(tmp_path_factory.mktemp("foreign") / "index.sqlite", FOREIGN_PAGES, 0))


def examine_all(folder: Path, trials: int, damage: Callable[[int], tuple[str, Files]]) -> Counter[str]:
    """What came of each of so many damages, by "refused with ..." and "opened"."""
    outcomes: Counter[str] = Counter()
    for seed in range(trials):
        name, files = damage(seed)
        copy = folder / str(seed)
        try:
            outcome, left = examine(copy, files)
            if "log" not in name:
                assert outcome != "opened" or left == len(FILED)
        except Exception as error:
            error.add_note(f"after {name}, seed {seed}")
            raise
        outcomes[outcome] += 1
        for leftover in folder.glob(f"{seed}*"):
            leftover.unlink()
    print(f"\n{trials} files: {dict(outcomes)}")
    return outcomes


def test_a_damaged_file_is_refused_unless_all_is_right(closed: Files, tmp_path: Path, trials: int) -> None:
    names = list(OF_THE_FILE)

    def damage(seed: int) -> tuple[str, Files]:
        name = names[seed % len(names)]
        return name, {"": OF_THE_FILE[name](closed[""], random.Random(seed))}

    outcomes = examine_all(tmp_path, trials, damage)
    assert outcomes["refused with 5"] > trials / 3
    assert outcomes["opened"] > 0


def test_a_page_id_that_has_lost_its_number_is_damage(closed: Files, tmp_path: Path) -> None:
    async def find() -> None:
        index = index_in(tmp_path / "copy")
        await index.open()
        with pytest.raises(IndexCorruptError, match="has no number"):
            await index.find("page 0 of the index")
        with suppress(DedupError):
            await index.close()

    key = b"number INTEGER PRIMARY KEY,     -- in the order of confirmation"
    assert closed[""].count(key) == 1
    torn = closed[""].replace(
        key, b"number INTEGER,".ljust(len(key))
    )  # then it is a column like others, and NULL
    put(tmp_path / "copy", {"": torn})
    asyncio.run(find())


def test_a_damaged_log_costs_the_pages_only_it_has(killed: Files, tmp_path: Path, trials: int) -> None:
    names = list(OF_THE_LOG)

    def damage(seed: int) -> tuple[str, Files]:
        rng, name = random.Random(seed), names[seed % len(names)]
        files = killed | {"-wal": OF_THE_LOG[name](killed["-wal"], rng)}
        if rng.random() < 0.5:
            files["-shm"] = rng.randbytes(len(files["-shm"]))
        return name, files

    assert examine_all(tmp_path, trials // 4, damage)["opened"] > 0


def test_without_its_log_an_index_has_what_was_in_the_file(killed: Files, tmp_path: Path) -> None:
    assert examine(tmp_path / "whole", killed) == ("opened", 60)
    assert examine(tmp_path / "without", {"": killed[""]}) == ("opened", 30)
    assert examine(tmp_path / "without its index", {end: killed[end] for end in ("", "-wal")}) == (
        "opened",
        60,
    )


def test_the_log_of_another_index_drops_no_page_of_this_one_wrongly(
    closed: Files, killed: Files, foreign: Files, tmp_path: Path
) -> None:
    for number, files in enumerate((closed, killed)):
        for log in (foreign["-wal"], foreign["-wal"][: 32 + 5 * (PAGE + 24)]):
            outcome, _ = examine(tmp_path / f"{number} {len(log)}", {"": files[""], "-wal": log})
            assert outcome in {"opened", "refused with 5"}, outcome


# --- Damages that are made while the index is open ----------------------------------------------------


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE pages SET url = 'http://elsewhere/'",
        "UPDATE pages SET sketch = zeroblob(128)",
        "UPDATE pages SET simhash = digest, digest = scope",
        "UPDATE pages SET number = 1000 - number",
        "UPDATE pages SET number = -1 WHERE number = 1; UPDATE pages SET number = 1 WHERE number = 2",
        "DELETE FROM pages",
        "DROP TABLE pages",
    ],
)
@driven
async def test_a_page_that_is_changed_behind_our_back_drops_no_other(filled: Path, damage: str) -> None:
    index = index_in(filled)
    await index.open()
    for statement in damage.split(";"):
        change(filled, statement)
    try:
        await use(index, {claim[0]: claim for claim in FILED})
    finally:
        with suppress(DedupError):
            await index.close()


# --- What is no index, or not one that can be read -----------------------------------------------------


def test_an_empty_file_is_refused_and_left(path: Path) -> None:
    path.touch()
    for _ in range(2):  # the refused file isn't held either
        with pytest.raises(IndexCorruptError, match="empty"):
            try_to_open(path)
    assert path.read_bytes() == b""


FOREIGN: dict[str, Callable[[Path], object]] = {
    "one byte": lambda path: path.write_bytes(b"\0"),
    "99 random bytes": lambda path: path.write_bytes(random.Random(1).randbytes(99)),
    "a megabyte of random bytes": lambda path: path.write_bytes(random.Random(2).randbytes(1 << 20)),
    "zeros": lambda path: path.write_bytes(bytes(8192)),
    "text": lambda path: path.write_text("This is no index.\n" * 1000),
    "a drop log": lambda path: path.write_text(json.dumps({"url": "http://a/", "distance": 1}) + "\n"),
    "gzip": lambda path: path.write_bytes(gzip.compress(random.Random(3).randbytes(5000))),
    "another database": lambda path: change(path, "CREATE TABLE header (name TEXT, value TEXT)"),
}


def assert_refused_and_left(path: Path, *errors: type[DedupError]) -> None:
    before = path.read_bytes()
    for _ in range(2):  # a refused file isn't held
        with pytest.raises(errors) as refusal:
            try_to_open(path)
        assert str(path) in str(refusal.value)
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", FOREIGN)
def test_a_file_of_something_else_is_refused_and_left_byte_for_byte(path: Path, content: str) -> None:
    FOREIGN[content](path)
    assert_refused_and_left(path, IndexMismatchError)


@pytest.mark.parametrize("name", ["a loop", "/dev/full", "/dev/null", "a pipe"])
def test_what_is_no_file_is_refused_at_once(path: Path, name: str) -> None:
    if name == "a loop":
        path.symlink_to(path)
    elif name == "a pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(name)
    started = time.process_time()
    with pytest.raises(DedupError) as refusal:
        try_to_open(path)
    assert time.process_time() - started < LIMIT
    assert refused(path, refusal.value)


DAMAGE = {
    "a plan of no number": "UPDATE header SET value = 'x' WHERE name = 'tables'",
    "no pages": "DROP TABLE pages",
    "no header": "DROP TABLE header",
    "a segment of other keys": "UPDATE segments SET keys = zeroblob(length(keys))",
    "no segment": "DELETE FROM segments",
    "a page that no segment has": "INSERT INTO pages SELECT 1000, page_id || 'x', url, simhash, scope, digest, bands, "
    "sketch, filed, run, markup, called, rare, checksum FROM pages WHERE number = 7",
    "a page too few": "DELETE FROM pages WHERE number = 7",
}
#: Each makes one page unreadable.
OF_A_PAGE = {
    "a URL that is no text": "UPDATE pages SET url = CAST(x'ff' AS TEXT) WHERE number = 7",
    **{
        f"another {column}": f"UPDATE pages SET {column} = {column} || 'x' WHERE number = 7"
        for column in ("page_id", "url", "simhash", "scope", "digest", "bands", "sketch", "filed", "run")
    },
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_changed_page_or_header_is_refused_and_the_file_left(filled: Path, damage: str) -> None:
    change(filled, DAMAGE[damage])
    assert_refused_and_left(filled, IndexCorruptError, IndexMismatchError)


@pytest.mark.parametrize("damage", OF_A_PAGE)
@driven
async def test_a_changed_page_is_refused_when_it_is_read(filled: Path, damage: str) -> None:
    change(filled, OF_A_PAGE[damage])
    async with opened_at(f"file:{filled}") as index:
        await use(index, {claim[0]: claim for claim in FILED})
        page_id, _, page = FILED[6]
        if "page_id" in damage:
            assert await index.find(page_id) is None
            page_id += "x"
        with pytest.raises(IndexCorruptError, match=re.escape(str(filled))):
            await index.find(page_id)
        with pytest.raises(IndexCorruptError):
            await index.claim("a twin", "http://twin/", page)
        assert await index.count() == len(FILED)
