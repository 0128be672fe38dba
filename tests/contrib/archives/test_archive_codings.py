"""What servers wrap pages in, as archives hold it: codings, heads and character sets; no record goes uncounted."""

import gzip
import zlib
from pathlib import Path

import pytest

from dedup.contrib.archives import Cleaning, open_input
from dedup.contrib.archives.capture import MAX_BODY
from dedup.contrib.archives.http import charset_of, parse
from dedup.page.charset import decode
from tests.contrib.archives.test_archive import read, record, urls
from tests.support.crawls import words
from tests.support.packing import PACK
from tests.support.processes import scrapy

OK = b"HTTP/1.1 200 OK\r\n"
HTML = b"Content-Type: text/html\r\n"
PAGE = f"<title>A page</title><p>{words('same')}".encode()


def raw_deflate(body: bytes) -> bytes:
    return zlib.compress(body)[2:-4]


def chunked(body: bytes) -> bytes:
    return b"7;x=1\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n" % (body[:7], len(body) - 7, body[7:])


def response(fields: bytes, body: bytes) -> bytes:
    return OK + HTML + fields + b"\r\n" + body


def coded(coding: str, body: bytes) -> bytes:
    return response(f"Content-Encoding: {coding}\r\n".encode(), body)


GZIP, ZLIB = gzip.compress(PAGE), zlib.compress(PAGE)
CHUNKED = b"Transfer-Encoding: chunked\r\n"
#: Messages that hold one page, however it was sent.
SENT = {
    "plain": response(b"", PAGE),
    "x-gzip": coded("X-GZip", GZIP),
    "gzip of two members": coded("gzip", gzip.compress(PAGE[:99]) + gzip.compress(PAGE[99:])),
    "gzip without its checksum": coded("gzip", GZIP[:-8]),
    "gzip of another checksum": coded("gzip", GZIP[:-8] + bytes(8)),
    "gzip and more behind it": coded("gzip", GZIP + b"\r\n<!-- more -->"),
    "raw deflate": coded("deflate", raw_deflate(PAGE)),
    "gzip called deflate": coded("deflate", GZIP),
    "two codings": coded("deflate, gzip", gzip.compress(ZLIB)),
    "two headers": coded("gzip\r\nContent-Encoding: deflate", zlib.compress(GZIP)),
    "gzip, unpacked already": coded("gzip\r\nContent-Length: 90000", PAGE),
    "deflate, unpacked already": coded("deflate", PAGE),
    "no coding": coded("identity", PAGE),
    "a coding that nobody knows, unpacked already": coded("own", PAGE),
    "chunked": response(CHUNKED, chunked(PAGE)),
    "gzip, chunked": response(CHUNKED + b"Content-Encoding: gzip\r\n", chunked(GZIP)),
    "gzip as it was transferred": response(b"Transfer-Encoding: gzip, chunked\r\n", chunked(GZIP)),
    "a type said twice": OK + b"Content-Type: TEXT/HTML, text/html\r\n\r\n" + PAGE,
} | {name: coded(name, pack(PAGE)) for name, pack in PACK.items()}
#: Those of which something is missing, or can't be read.
UNREAD = {
    "deflate cut off": coded("deflate", ZLIB[:90]),
    "raw deflate cut off": coded("deflate", raw_deflate(PAGE)[:90]),
    "gzip damaged": coded("gzip", GZIP[:60] + bytes(40) + GZIP[100:]),
    "a coding that nobody knows": coded("own", bytes(range(256)) * 4),
    "of another length than the server said": response(b"Content-Length: 9000\r\n", PAGE),
    "packed in two members, the second cut off": coded("gzip", GZIP + gzip.compress(b"<p>and more")[:20]),
    "too long when it is unpacked": coded("gzip", gzip.compress(PAGE + b" " * MAX_BODY)),
}


def archive(path: Path, messages: dict[str, bytes]) -> Path:
    marked = (
        record(f"http://{n}.example/", message, "message", WARC_Type="response")
        for n, message in enumerate(messages.values())
    )
    path.write_bytes(b"".join(marked))
    return path


def test_every_coding(tmp_path: Path) -> None:
    path = archive(tmp_path / "x.warc", SENT)
    bodies = [item.capture and item.capture.body for item in open_input(path)]
    assert [name for name, body in zip(SENT, bodies, strict=True) if body != PAGE] == []
    assert Cleaning([str(path)]).run().stats["dedup/dropped"] == len(SENT) - 1


def test_unread_pages_unjudged(tmp_path: Path) -> None:
    path = archive(tmp_path / "x.warc", UNREAD)
    with path.open("ab") as file:
        file.write(record("http://a/", PAGE, WARC_Segment_Number="1"))
    assert Cleaning([str(path)], types="all").run().stats["dedup/unjudged/partial"] == len(UNREAD) + 1


def test_every_record_counts(tmp_path: Path) -> None:
    others = [
        record("http://a/", "GET / HTTP/1.1\r\n\r\n", "request"),
        record("http://a/", "200 OK", "revisit"),
        record("http://a/", "a text", "conversion", Content_Type="text/plain"),
        record("http://a/", "no message", WARC_Type="response", kind="resource"),
        record("http://a/", "HTTP/1.1 100 Continue\r\n\r\n", WARC_Type="response", kind="resource"),
        record("http://a/", "HTTP/1.1 404 Not Found\r\n\r\n<p>", WARC_Type="response", kind="resource"),
        record("", "<p>"),
    ]
    path = archive(tmp_path / "x.warc", SENT | UNREAD)
    path.write_bytes(path.read_bytes() + b"".join(others) + b"no record\r\n")
    kept, pages = tmp_path / "kept.jsonl", len(SENT) + len(UNREAD)
    done = scrapy("dedup", path, "-o", kept)
    told = f"{pages} pages judged, 7 skipped (2 kind, 1 no url, 1 not http, 2 status, 1 type)\n"
    assert (done.returncode, done.stdout[: len(told)]) == (7, told)
    said = done.stderr.splitlines()
    assert said[:-1] == [
        f"dedup: 1 record left out: no WARC record; the first is in {path}",
        f"dedup: 1 record not judged: without a URL; the first is in {path}",
        f"dedup: 1 record not judged: no HTTP response; the first is in {path}",
        f"dedup: damaged records are in {kept}.damaged, unless they can't be unpacked",
    ]
    assert said[-1] == (
        "dedup: not written, since the format of the output has no place for it: 2 requests, revisits and others that "
        "hold no page, 1 without a URL, 1 no HTTP response, 2 of another status than 200, "
        "1 of a type that DEDUP_TYPES does not name"
    )
    result = Cleaning([str(path)], str(tmp_path / "again.jsonl")).run()
    told_of = [result.stats["dedup/pages"], *(count for count, _ in (result.others | result.damage).values())]
    assert sum(told_of) == len([*open_input(path)]) == pages + 8
    assert sum(result.unwritten.values()) == 7
    assert len(urls(kept)) == 1 + len(UNREAD)


@pytest.mark.parametrize(
    ("label", "codec", "text"),
    [
        ("gb2312", "gb18030", "镕瀞𠀀"),
        ("x-gbk", "gb18030", "漢字"),
        ("us-ascii", "cp1252", "“quoted”"),
        ("shift_jis", "cp932", "①㈱"),
        ("euc-kr", "cp949", "똠방각하"),
    ],
)
def test_charset_labels(label: str, codec: str, text: str) -> None:
    other = '<meta charset="koi8-r">'
    page = parse(OK + f"Content-Type: text/html;charset={label}\r\n\r\n{other}".encode() + text.encode(codec))
    assert page is not None
    assert decode(page.body, charset_of(page.type)) == other + text


def test_header_beats_page() -> None:
    page = '<meta charset="utf-8"><p>Größe'.encode()
    assert decode(page, "iso-8859-1").endswith("GrÃ¶ÃŸe")


def test_lines_are_unpacked_and_decoded(tmp_path: Path) -> None:
    text = f"<p>Größe {words(2)}"
    latin = OK + b"Content-Type: text/html; charset=latin-1\r\n\r\n" + text.encode("latin-1")
    Cleaning(
        [str(archive(tmp_path / "x.warc", SENT | {"latin": latin}))], str(kept := tmp_path / "k.jsonl")
    ).run()
    assert [row["html"] for row in read(kept)] == [PAGE.decode(), text]
