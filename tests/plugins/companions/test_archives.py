"""What is kept of an archive is replayed by pywb, and WACZ is made of it."""

import gzip
import json
import os
import socket
import subprocess
import urllib.error
import urllib.request
import zipfile
from base64 import b32encode
from collections.abc import Callable, Iterator
from hashlib import sha1
from pathlib import Path
from typing import Any

import pytest

from dedup.contrib.archives import Cleaning
from dedup.contrib.archives.outputs import IDENTICAL
from dedup.settings import IndexSettings
from tests.contrib.archives.test_archive import record
from tests.support import ROOT
from tests.support.crawls import words
from tests.support.waiting import LIMIT, wait_until

pytest.importorskip("wacz", reason="wacz is not installed: archives of other formats are NOT tested")

from warcio.archiveiterator import ArchiveIterator

#: Its own programs, since it needs an older redis than we do.
PYWB = Path(os.environ.get("PYWB", ROOT / ".venvs/pywb/bin"))
#: Pages of three contents: one, one more, an equal copy of the first, and a near copy of the second.
TEXTS = {"a": words(1), "b": words(2), "c": words(1), "d": f"{words(2)} once more"}
PAGES = {f"http://{name}.example/": f"<title>Page</title><p>{text}" for name, text in TEXTS.items()}
#: Pages of other hosts are compared as a whole.
WHOLE = IndexSettings(chrome=False)
DATE = "20261101100000"


def records() -> list[bytes]:
    digests = (f"sha1:{letter * 32}" for letter in "ABAD")  # of which pywb compares only the texts
    return [
        record(url, html, WARC_Payload_Digest=digest)
        for (url, html), digest in zip(PAGES.items(), digests, strict=True)
    ]


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def fetch(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=LIMIT) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, ""


@pytest.fixture
def replayed(tmp_path: Path) -> Iterator[Callable[[Path], Any]]:
    """Gives an archive to pywb; what is at a URL then."""
    started: list[subprocess.Popen[bytes]] = []
    folder = tmp_path / "pywb"
    folder.mkdir()

    def replay(warc: Path) -> Callable[[str], tuple[int, str]]:
        for command in (["init", "kept"], ["add", "kept", str(warc)]):
            subprocess.run([PYWB / "wb-manager", *command], cwd=folder, check=True, capture_output=True)
        port = free_port()
        with (folder / "log").open("wb") as log:
            started.append(
                subprocess.Popen(
                    [PYWB / "wayback", "-p", str(port), "-b", "127.0.0.1"], cwd=folder, stdout=log, stderr=log
                )
            )

        def is_up() -> bool:
            assert started[0].poll() is None, (folder / "log").read_text()
            with socket.socket() as tried:
                return tried.connect_ex(("127.0.0.1", port)) == 0

        wait_until(is_up)
        return lambda url: fetch(f"http://127.0.0.1:{port}/kept/{DATE}mp_/{url}")

    yield replay
    for process in started:
        process.terminate()
        process.wait(LIMIT)


@pytest.mark.skipif(not PYWB.exists(), reason="pywb is not installed: replay is NOT tested")
@pytest.mark.parametrize("kind", ["warc.gz", "wacz"])
def test_pywb_replays_duplicates(kind: str, tmp_path: Path, replayed: Callable[[Path], Any]) -> None:
    path, kept, index = tmp_path / "pages.warc.gz", tmp_path / f"kept.{kind}", tmp_path / "kept.cdxj"
    path.write_bytes(b"".join(map(gzip.compress, records())))
    result = Cleaning([str(path)], str(kept), cdxj=str(index), plan=WHOLE).run()
    assert result.stats["dedup/dropped"] == 2
    listed = [json.loads(line[line.index("{") :]) for line in index.read_text().splitlines()]
    assert {one["url"] for one in listed} == {*PAGES}
    warc = kept
    if kind == "wacz":
        with zipfile.ZipFile(kept) as packed:
            names = packed.namelist()
            assert {"archive/data.warc.gz", "indexes/index.idx", "pages/pages.jsonl", "datapackage.json"} <= {
                *names
            }
            pages = packed.read("pages/pages.jsonl").decode()
            packed.extract("archive/data.warc.gz", tmp_path)
        assert [url in pages for url in PAGES] == [True, True, False, False]
        warc = tmp_path / "archive/data.warc.gz"
        again = Cleaning([str(kept)], str(tmp_path / "again.warc.gz")).run()
        assert again.stats["dedup/pages"] == 2
    found = replayed(warc)
    for url, text in zip(PAGES, TEXTS.values(), strict=True):
        status, page = found(url)
        assert (status, text[:40] in page) == (200, True), url
    with warc.open("rb") as file:
        assert sum(1 for _ in ArchiveIterator(file)) == 4


@pytest.mark.skipif(not PYWB.exists(), reason="pywb is not installed: replay is NOT tested")
@pytest.mark.parametrize("said", [True, False])
def test_pywb_replays_revisit_of_dropped(said: bool, tmp_path: Path, replayed: Callable[[Path], Any]) -> None:
    """Of a page of the input that is dropped: by where it was, or only by its digest."""
    html = PAGES["http://d.example/"].encode()
    digest = "sha1:" + b32encode(sha1(html, usedforsecurity=False).digest()).decode()
    place = {"WARC_Refers_To_Target_URI": "http://d.example/", "WARC_Refers_To_Date": "2026-11-01T10:00:00Z"}
    revisit = record(
        "http://e.example/",
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n",
        "revisit",
        Content_Type="application/http; msgtype=response",
        WARC_Profile=IDENTICAL,
        WARC_Payload_Digest=digest,
        **(place if said else {}),
    )
    path, kept = tmp_path / "pages.warc.gz", tmp_path / "kept.warc.gz"
    whole = [*records()[:3], record("http://d.example/", html, WARC_Payload_Digest=digest), revisit]
    path.write_bytes(b"".join(map(gzip.compress, whole)))
    assert Cleaning([str(path)], str(kept), plan=WHOLE).run().stats["dedup/dropped"] == 2
    status, page = replayed(kept)("http://e.example/")
    assert (status, TEXTS["b"][:40] in page) == (200, True)
