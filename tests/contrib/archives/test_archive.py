"""Archives are cleaned: what is kept of them, in every format, and whatever happens meanwhile."""

import gzip
import io
import json
import subprocess
import zipfile
from base64 import b32encode
from collections.abc import Iterable
from hashlib import sha1
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import pytest

from dedup import Detector, SettingsError
from dedup.contrib.archives import Capture, Cleaning, fingerprint, open_input
from dedup.contrib.archives.commands.run import OTHERS
from dedup.contrib.archives.folder import SUFFIXES
from dedup.contrib.archives.outputs import IDENTICAL, NEAR
from dedup.contrib.archives.packing import pack, unpack
from dedup.contrib.archives.warc import Warc
from dedup.settings import FilterSettings
from tests.support import ROOT
from tests.support.crawls import words
from tests.support.waiting import LIMIT
from tests.support.warm import python

#: Ten pages, of which the last four have the texts of the first four.  In the order of their URLs.
PAGES = {f"http://example.org/{n}": f"<title>Page</title><p>{words(n % 6)}" for n in range(10)}
KEPT = list(PAGES)[:6]


def rows(pages: dict[str, str] = PAGES) -> bytes:
    return json_lines({"url": url, "html": html} for url, html in pages.items())


def json_lines(objects: Iterable[Any]) -> bytes:
    return "".join(f"{json.dumps(each)}\n" for each in objects).encode()


def read(path: Path) -> list[dict[str, Any]]:
    """The objects in a file of JSON Lines."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def record(url: str, html: str | bytes, kind: str = "response", **fields: str) -> bytes:
    """A record of WARC, with the fields given instead of its own."""
    body = html if isinstance(html, bytes) else html.encode()
    block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + body if kind == "response" else body
    own = {
        "WARC-Type": kind,
        "WARC-Record-ID": f"<urn:uuid:{uuid5(NAMESPACE_URL, url)}>",
        "WARC-Date": "2026-11-01T10:00:00Z",
        "WARC-Target-URI": url,
        "Content-Length": str(len(block)),
    } | {name.replace("_", "-"): value for name, value in fields.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in own.items() if value)
    return f"WARC/1.1\r\n{head}\r\n".encode() + block + b"\r\n\r\n"


def records(pages: dict[str, str] = PAGES) -> list[bytes]:
    return [record(url, html) for url, html in pages.items()]


def write(path: Path, octets: bytes) -> Path:
    path.write_bytes(octets)
    return path


def zipped(files: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as packed:
        for name, octets in files.items():
            packed.writestr(name, octets)
    return made.getvalue()


def parquet(path: Path) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"url": list(PAGES), "html": list(PAGES.values())}), path, row_group_size=4)
    return path


def folder(path: Path) -> Path:
    path.mkdir()
    for number, html in enumerate(PAGES.values()):
        (path / f"{number}.html").write_text(html)
    return path


FORMATS: dict[str, Any] = {
    "pages.jsonl": lambda path: write(path, rows()),
    "pages.jsonl.gz": lambda path: write(path, gzip.compress(rows())),
    "pages.warc": lambda path: write(path, b"".join(records())),
    "pages.warc.gz": lambda path: write(path, b"".join(map(gzip.compress, records()))),
    "whole.warc.gz": lambda path: write(path, gzip.compress(b"".join(records()))),
    "pages.parquet": parquet,
    "pages": folder,
}


def urls(path: Path) -> list[str]:
    """The URLs of the captures in a file."""
    return [item.capture.url for item in open_input(path) if item.capture]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("kept", ["kept.jsonl", "kept.jsonl.gz", "kept.warc", "kept.warc.gz"])
def test_every_format_is_cleaned(name: str, kept: str, tmp_path: Path) -> None:
    source, target = FORMATS[name](tmp_path / name), tmp_path / kept
    result = Cleaning([str(source)], str(target)).run()
    hosts = "http://localhost/{}.html" if name == "pages" else "http://example.org/{}"
    assert urls(target) == [hosts.format(n) for n in range(6)]
    assert (result.damage, result.unwritten) == ({}, {})
    assert not (tmp_path / f"{kept}.part").exists()


def test_short_page_packed_with_words() -> None:
    capture = Capture("http://example.org/", "<p>Not found")
    page, made = unpack(pack(*fingerprint(capture, Detector())))
    assert (page.tokens, page.reason, made.reason) == (["not", "found"], "short", "short")


def test_files_not_read(tmp_path: Path) -> None:
    pages = folder(tmp_path / "mirror")
    (pages / "0.html").rename(pages / "index.php@id=3")
    (pages / "below").mkdir()
    (pages / "below" / "link.html").symlink_to(pages / "1.html")
    result = Cleaning([str(pages)], str(tmp_path / "kept.jsonl")).run()
    assert result.others == {"name": (2, str(pages))}
    assert OTHERS["name"] == f"no file that ends with {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"


def test_standard_input_and_output(tmp_path: Path) -> None:
    done = subprocess.run(
        [python(), "-m", "scrapy", "dedup", "-", "-o", "-"],
        cwd=ROOT,
        input=gzip.compress(rows()),
        capture_output=True,
        check=True,
        timeout=LIMIT,
    )
    assert [json.loads(line)["url"] for line in done.stdout.splitlines()] == KEPT
    assert done.stderr.startswith(b"10 pages judged\n  kept      6: 6 new\n")


def test_revisit_records(tmp_path: Path) -> None:
    html = f"<title>A page</title><p>{words('same')}"
    pages = [("http://a/", html), ("http://b/", html), ("http://c/", html.upper())]
    source = write(tmp_path / "x.warc", b"".join(record(url, html) for url, html in pages))
    Cleaning([str(source)], str(tmp_path / "kept.warc")).run()
    found = [item.raw for item in Warc(tmp_path / "kept.warc")]
    assert [each.fields["warc-type"] for each in found] == ["response", "revisit", "revisit"]
    assert [each.fields.get("warc-profile") for each in found] == [None, IDENTICAL, NEAR]
    for each, url in zip(found[1:], ("http://b/", "http://c/"), strict=True):
        assert each.fields["warc-target-uri"] == url
        assert each.fields["warc-refers-to-target-uri"] == "http://a/"
        assert each.fields["warc-refers-to"] == found[0].fields["warc-record-id"]
        assert each.fields["warc-refers-to-date"] == "2026-11-01T10:00:00Z"
        assert each.block == b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"


def test_other_records_stay_in_warc(tmp_path: Path) -> None:
    whole = [
        record("", "software: x", "warcinfo"),
        record("http://a/", "GET / HTTP/1.1\r\n\r\n", "request"),
        *records(),
        record("http://a/", "200 OK", "metadata"),
    ]
    source = write(tmp_path / "x.warc.gz", b"".join(map(gzip.compress, whole)))
    Cleaning([str(source)], str(tmp_path / "kept.warc.gz")).run()
    kept = gzip.decompress((tmp_path / "kept.warc.gz").read_bytes())
    assert kept.startswith(b"".join(whole[:8]))  # 2 and the six that are kept
    assert kept.endswith(whole[-1])


def test_revisit_of_dropped_page(tmp_path: Path) -> None:
    """By the URL and the time of the page, or else by its digest; one of a kept page stays as it is."""
    html = f"<title>A page</title><p>{words('same')}"
    texts = {"http://a/": html, "http://b/": html.upper(), "http://c/": html}
    pages = [record(url, text) for url, text in texts.items()]
    digests = {
        url: "sha1:" + b32encode(sha1(text.encode(), usedforsecurity=False).digest()).decode()
        for url, text in texts.items()
    }
    head = "HTTP/1.1 200 OK\r\n\r\n"

    def revisit(url: str, of: str = "", **fields: str) -> bytes:
        place = {"WARC_Refers_To_Target_URI": of, "WARC_Refers_To_Date": "2026-11-01T10:00:00Z"} if of else {}
        return record(url, head, "revisit", **place, WARC_Profile=IDENTICAL, **fields)

    revisits = [
        revisit("http://1/", "http://b/", WARC_Payload_Digest=digests["http://b/"]),
        revisit("http://2/", WARC_Payload_Digest=digests["http://b/"]),
        revisit("http://3/", "http://c/", WARC_Payload_Digest=digests["http://c/"]),
        revisit("http://4/", "http://a/", WARC_Payload_Digest=digests["http://a/"]),
        revisit("http://5/", "http://elsewhere/", WARC_Payload_Digest="md5:of another program"),
    ]
    source = write(tmp_path / "x.warc", b"".join(revisits + pages))
    Cleaning([str(source)], str(kept := tmp_path / "kept.warc")).run()
    found = [item.raw for item in Warc(kept)][:5]
    assert [one.fields["warc-target-uri"] for one in found] == [f"http://{n}/" for n in range(1, 6)]
    assert [one.fields["warc-refers-to-target-uri"] for one in found] == ["http://a/"] * 4 + [
        "http://elsewhere/"
    ]
    assert [one.fields["warc-profile"] for one in found] == [NEAR, NEAR] + [IDENTICAL] * 3
    assert ["warc-payload-digest" in one.fields for one in found] == [False, False, True, True, True]
    assert [one.block for one in found] == [head.encode()] * 5
    assert b"".join(revisits[3:]) in kept.read_bytes()


def test_action_mark(tmp_path: Path) -> None:
    source = write(tmp_path / "pages.jsonl", rows())
    result = Cleaning(
        [str(source)],
        str(tmp_path / "kept.jsonl"),
        str(tmp_path / "log"),
        filter=FilterSettings(action="mark"),
    ).run()
    assert (tmp_path / "kept.jsonl").read_bytes() == rows()
    assert (result.stats["dedup/marked"], (tmp_path / "log").read_text().count("\n")) == (4, 4)


def test_texts_are_no_html(tmp_path: Path) -> None:
    text = "if a<b and c>d: " + words("text")
    lines = [{"text": text}, {"text": text.replace("b", "x", 1)}, {"text": text}]
    source = write(tmp_path / "x.jsonl", json_lines(lines))
    Cleaning([str(source)], str(tmp_path / "kept.jsonl"), detector=Detector(min_resemblance=0.999)).run()
    assert read(tmp_path / "kept.jsonl") == lines[:2]


def test_extracted_texts(tmp_path: Path) -> None:
    texts = [(f"http://example.org/{n}", words(n % 2)) for n in range(4)]
    octets = [record(url, text, "conversion", Content_Type="text/plain") for url, text in texts]
    source = write(tmp_path / "x.warc.wet.gz", b"".join(map(gzip.compress, octets)))
    with pytest.raises(SettingsError, match=r"no page is in 4 records \(4 type\)"):
        Cleaning([str(source)]).run()
    text = Cleaning([str(source)], types="text").run()
    assert (text.stats["dedup/new"], text.stats["dedup/duplicate"]) == (2, 2)
