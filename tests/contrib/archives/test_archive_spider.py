"""`scrapy crawl warc`: an archive goes through the middleware of a crawl, and nothing is asked of any server."""

import gzip
from pathlib import Path

from crawler.spiders.warc import WarcSpider
from dedup.contrib.archives import Cleaning
from tests.contrib.archives.test_archive import read, record
from tests.contrib.archives.test_archive_codings import SENT, archive
from tests.support.crawls import words
from tests.support.processes import Scrapy, scrapy
from tests.support.waiting import LIMIT

REFRESH = '<meta http-equiv="refresh" content="0; url=http://127.0.0.1:1/">' + f"<p>{words('refresh')}"


def test_spider_drops_as_command(tmp_path: Path) -> None:
    pages = {f"http://127.0.0.1:1/{n}": f"<p>{words(n % 12)} {words(n, n % 4)} <a href=/>" for n in range(40)}
    pages["http://127.0.0.1:1/refresh"] = REFRESH
    pages["http://127.0.0.1:1/" + "long" * 1000] = f"<p>{words('long')}"
    path = tmp_path / "x.warc.gz"
    dated = (
        (url, html, f"2026-11-01T10:00:{second:02}Z") for second, (url, html) in enumerate(pages.items())
    )
    packed = (gzip.compress(record(url, html, WARC_Date=date)) for url, html, date in dated)
    path.write_bytes(b"".join(packed) + gzip.compress(record("http://127.0.0.1:1/cut", REFRESH))[:-20])
    dropped, kept = tmp_path / "dropped.jsonl", tmp_path / "kept.jsonl"
    command = ["crawl", "warc", "-a", f"path={path}", "-O", kept, "-s", f"DEDUP_LOG={dropped}"]
    assert Scrapy(*command, output=tmp_path).wait(LIMIT) == 0
    Cleaning([str(path)], duplicates=str(tmp_path / "drops.jsonl")).run()
    assert read(dropped)
    assert [each["url"] for each in read(dropped)] == [each["url"] for each in read(tmp_path / "drops.jsonl")]
    met = {each["url"] for each in read(dropped)} | {each["url"] for each in read(kept)}
    assert met == set(pages)
    assert read(kept)[1]["fetched"] == "2026-11-01T10:00:01Z"
    said = (tmp_path / "stderr").read_text()
    assert "downloader/exception" not in said
    assert "Not in this crawl: 1 cut_off" in said


def test_spider_every_coding(tmp_path: Path) -> None:
    archive(path := tmp_path / "x.warc", SENT)
    dropped = tmp_path / "dropped.jsonl"
    done = scrapy("crawl", "warc", "-a", f"path={path}", "-s", f"DEDUP_LOG={dropped}")
    assert done.returncode == 0
    assert len(read(dropped)) == len(SENT) - 1


def test_spider_missing_file(tmp_path: Path) -> None:
    done = scrapy("crawl", "warc", "-a", f"path={tmp_path}/none", "-s", f"DEDUP_LOG={tmp_path}/log.jsonl")
    assert done.returncode == 2
    assert f"the input {tmp_path}/none can't be read: there is no such file" in done.stderr


def test_spider_wrong_arguments() -> None:
    assert str(WarcSpider().wrong) == "path is missing; give one or more files: -a path=pages.warc.gz"
    assert str(WarcSpider(file="x").wrong) == "this spider has no argument file; allowed: path"


def test_index_info_without_spider(tmp_path: Path) -> None:
    done = scrapy("index", "info", "-s", f"DEDUP_INDEX=file:{tmp_path}/none.sqlite", "--spider", "")
    assert "nothing has been filed there yet" in done.stderr
