"""What earlier code has written is read for ever, or refused in a line that says why: tests/golden/make.py wrote it.

Nothing in these folders is ever changed.  A new format gets a folder of its own, and its line below.
"""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from dedup import Detector
from dedup.droplog.course import read_steps, read_thresholds
from dedup.droplog.reader import Reader, find_beside
from dedup.errors import IndexMismatchError
from dedup.index import Entry, Index
from dedup.index.export import read_header, read_line
from tests.golden.make import URL, fill, pages, words
from tests.support.coroutines import driven
from tests.support.redis import Server
from tests.support.stores import opened

GOLDEN = Path(__file__).with_name("golden")
#: What the crawls have kept.
KEPT = ("/", "/story", "/print", "/copy")


class Written(NamedTuple):
    """The numbers of what was written: of a file, an index in Redis, an export, and of the fingerprints in them."""

    layout: int
    format: int
    export: int = 0
    scheme: int = 0


FOLDERS = {
    "index-1": Written(1, 1), "index-2": Written(2, 2), "index-3": Written(3, 3, 1),
    "index-4": Written(4, 4, 2), "index-5": Written(5, 4, 2), "redis-5": Written(5, 5, 2),
    "scheme-4": Written(5, 5, 2), "index-6": Written(6, 6, 3, 5), "scheme-6": Written(6, 6, 3, 6),
    "index-7": Written(7, 6, 3, 7), "index-8": Written(8, 7, 4, 7),
    "redis-8": Written(8, 8, 4, 7), "redis-9": Written(8, 9, 4, 7),
}  # fmt: skip
#: What is read.
READ = Written(8, 9, 4, 7)
EXPORTS = [name for name, written in FOLDERS.items() if written.export]


async def judge(index: Index) -> None:
    """Judges pages that a golden index holds, as a later crawl does that finds them elsewhere, and one that it has not."""
    survey = await index.survey()
    assert survey is not None
    assert {page.entry.url async for page in survey.pages()} == {f"{URL}{path}" for path in KEPT}
    assert [host.name async for host in survey.hosts()] == ["127.0.0.1:8321"]
    await survey.close()
    for path, known in (("/tale", True), ("/", True), ("/other", False)):
        html = pages().get(path, f"<p>{words(path)}")
        content = index.detector.fingerprint(html, f"{URL}{path}")
        verdict = await index.claim(f"new {path}", f"{URL}/new{path}", content)
        assert (verdict.status, verdict.known) == ("new", known)


def refusal(name: str, what: str) -> str:
    """Why an index or an export is refused: by its own number, or else by its fingerprints; "" if it is read."""
    written = FOLDERS[name]
    for called, field in ((what, what), ("scheme of fingerprints", "scheme")):
        found, read = getattr(written, field), getattr(READ, field)
        if found != read:
            return f"was built by an older version of this program: its {called} is {found}, and this one's is {read};"
    return ""


def test_every_folder_has_its_line() -> None:
    assert FOLDERS.keys() == {path.parent.name for path in GOLDEN.glob("*/index.sqlite.gz")}
    assert {*EXPORTS} == {path.parent.name for path in GOLDEN.glob("*/export.jsonl")}


async def assert_read_or_left(address: str, why: str, contents: Callable[[], object]) -> None:
    """An index is read, or refused with these words and left as it is."""
    before = contents()
    if not why:
        async with opened(address, "golden", Detector()) as index:
            await judge(index)
    else:
        with pytest.raises(IndexMismatchError, match=why):
            async with opened(address, "golden", Detector()):
                pass
        assert contents() == before


@pytest.mark.parametrize("name", FOLDERS)
@driven
async def test_a_file_of_each_format_is_read_or_refused_and_left(name: str, tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"
    path.write_bytes(gzip.decompress((GOLDEN / name / "index.sqlite.gz").read_bytes()))
    await assert_read_or_left(f"file:{path}", refusal(name, "layout"), path.read_bytes)


@pytest.mark.parametrize("name", FOLDERS)
@driven
async def test_a_redis_index_of_each_format_is_read_or_refused_and_left(name: str, server: Server) -> None:
    fill(server.client, json.loads((GOLDEN / name / "redis.json").read_text()))
    await assert_read_or_left(server.address, refusal(name, "format"), server.contents)


@pytest.mark.parametrize("name", EXPORTS)
@driven
async def test_an_export_of_each_format_is_read_or_refused(name: str, tmp_path: Path) -> None:
    header, *lines = (GOLDEN / name / "export.jsonl").read_bytes().splitlines(keepends=True)
    async with opened(f"file:{tmp_path}/index.sqlite", "golden", Detector()) as index:
        written = FOLDERS[name]
        if written.export != READ.export:
            with pytest.raises(
                ValueError, match=f"of format {written.export}, and this version reads {READ.export}"
            ):
                read_header(header, index, "it")
            return
        if why := refusal(name, "export"):
            with pytest.raises(IndexMismatchError, match="it " + why):
                read_header(header, index, "it")
            return
        read_header(header, index, "it")
        found = [read_line(line, index) for line in lines]
        await index.add_hosts(dict(each for each in found if not isinstance(each, Entry)))
        assert await index.add([each for each in found if isinstance(each, Entry)]) == len(KEPT)
        await judge(index)


@pytest.mark.parametrize("log", sorted(GOLDEN.glob("*/duplicates.jsonl")), ids=lambda path: path.parent.name)
def test_a_drop_log_of_any_version_is_read(log: Path) -> None:
    reader = Reader()
    [record] = reader.read([log])
    assert reader.unreadable == 0
    assert (record["url"], record["duplicate_of"]) == (f"{URL}/tale", f"{URL}/copy")
    assert (record["tokens"], record["links"], record["distance"]) == (152, 0, 0)
    if beside := find_beside(log, ".crawl"):
        [thresholds] = read_thresholds([beside])
        assert (thresholds.max_distance, thresholds.min_resemblance) == (6, 0.75)
        steps = read_steps([beside])  # one of a fast machine, and more of a busy one
        assert [
            sum(each) for each in zip(*((step.pages, step.duplicates) for step in steps), strict=True)
        ] == [5, 1]
