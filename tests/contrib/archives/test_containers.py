"""Archives of other formats, and what is damaged in one."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from dedup import SettingsError
from dedup.contrib.archives import Cleaning
from dedup.page.codings import ZSTD
from tests.contrib.archives.test_archive import record, urls, zipped
from tests.support.crawls import words

zstd = pytest.importorskip(ZSTD, reason=f"{ZSTD} is not installed: WARC packed so is NOT tested")

#: Pages of three contents, of which the first comes twice.
PAGES = {f"http://{n}.example/": f"<title>Page</title><p>{words(n % 3)}" for n in range(4)}
DATE = "20261101100000"


def records() -> list[bytes]:
    return [record(url, html) for url, html in PAGES.items()]


def arc() -> bytes:
    head = "1 0 Test\nURL IP-address Archive-date Content-type Archive-length\n\n"
    bodies = {"filedesc://x.arc": head} | {
        url: f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{page}" for url, page in PAGES.items()
    }
    return "".join(
        f"{url} 0.0.0.0 {DATE} text/html {len(body)}\n{body}\n" for url, body in bodies.items()
    ).encode()


def with_dictionary(warc: bytes) -> bytes:
    words = zstd.train_dict([warc[at : at + 400] for at in range(0, len(warc), 20)], 2048)
    frames = b"".join(zstd.compress(one, zstd_dict=words) for one in records())
    return b"\x5d\x2a\x4d\x18" + len(words.dict_content).to_bytes(4, "little") + words.dict_content + frames


FORMATS: dict[str, Callable[[], bytes]] = {
    "x.arc": arc,
    "x.arc.gz": lambda: gzip.compress(arc()),
    "x.warc.zst": lambda: b"".join(map(zstd.compress, records())),
    "dictionary.warc.zst": lambda: with_dictionary(b"".join(records())),
    "x.wacz": lambda: zipped({"archive/a.warc.gz": b"".join(map(gzip.compress, records()))}),
}


@pytest.mark.parametrize("name", FORMATS)
def test_other_formats(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"in.{name}"
    path.write_bytes(FORMATS[name]())
    result = Cleaning([str(path)], str(tmp_path / "kept.warc.gz")).run()
    assert result.stats["dedup/pages"] == 4
    assert result.stats["dedup/dropped"] == 1
    assert len(urls(tmp_path / "kept.warc.gz")) == 3
    assert not result.damage


@pytest.mark.parametrize("name", ["x.arc", "x.warc.zst"])
def test_other_formats_damaged(name: str, tmp_path: Path) -> None:
    path = tmp_path / "in"
    path.write_bytes(FORMATS[name]()[:-40])
    result = Cleaning([str(path)], str(tmp_path / "kept.warc.gz")).run()
    assert result.damage
    assert result.stats["dedup/pages"] >= 3


def test_wacz_of_every_format(tmp_path: Path) -> None:
    one, two, three, _ = records()
    path = tmp_path / "x.wacz"
    inner = zipped({"archive/a.warc": one})
    files = {"archive/a.WARC.GZ": gzip.compress(two), "archive/b.warc.zst": zstd.compress(three)}
    path.write_bytes(zipped({"collection/inner.wacz": inner, "archive/c.arc": arc()} | files))
    result = Cleaning([str(path)], str(kept := tmp_path / "kept.warc.gz")).run()
    assert result.stats["dedup/pages"] == 7
    assert sorted(urls(kept)) == [*PAGES][:3]


def test_wacz_wrong_checksum(tmp_path: Path) -> None:
    path = tmp_path / "x.wacz"
    octets = zipped({"archive/a.warc": b"".join(records()), "archive/b.warc": records()[3]})
    path.write_bytes(octets.replace(b"<title>", b"<Title>", 1))
    result = Cleaning([str(path)], str(kept := tmp_path / "kept.warc")).run()
    assert result.damage
    assert urls(kept) == [*PAGES][:3]


@pytest.mark.parametrize("length", [0, 90, 99_999])
@pytest.mark.parametrize("at", [0, 1, 3])
def test_arc_wrong_length(length: int, at: int, tmp_path: Path) -> None:
    path = tmp_path / "x.arc"
    url = [*PAGES][at]
    first = next(line for line in arc().splitlines() if line.startswith(url.encode()))
    path.write_bytes(arc().replace(first, first.rpartition(b" ")[0] + f" {length}".encode()))
    result = Cleaning([str(path)], str(kept := tmp_path / "kept.warc"), str(log := tmp_path / "log")).run()
    assert result.damage == {"no_record": (1, str(path))}
    assert url not in urls(kept)
    assert len(urls(kept)) + len(log.read_text().splitlines()) == 3


def test_missing_extras(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.warc"
    path.write_bytes(b"".join(records()))
    monkeypatch.setattr("dedup.contrib.archives.containers.find_spec", lambda name: None)
    for options in ({"output": "kept.wacz"}, {"output": "kept.warc", "cdxj": "kept.cdxj"}):
        with pytest.raises(SettingsError, match=r"needs more: pip install 'shingleback\[archives\]'"):
            Cleaning([str(path)], **options).run()
    with pytest.raises(SettingsError, match=r"Parquet needs pyarrow: pip install 'shingleback\[parquet\]'"):
        Cleaning([str(path)], str(tmp_path / "kept.parquet")).run()


def test_damage_is_set_aside(tmp_path: Path) -> None:
    whole = records()
    broken = whole[1].replace(b"Content-Length: ", b"Content-Length: 9")
    path, kept = tmp_path / "x.warc", tmp_path / "kept.warc"
    path.write_bytes(whole[0] + broken + whole[2])
    result = Cleaning([str(path)], str(kept)).run()
    assert result.damage == {"length": (1, str(path))}
    assert (tmp_path / "kept.warc.damaged").read_bytes() == broken
    assert urls(kept) == [*PAGES][:3:2]
    lines = tmp_path / "x.jsonl"
    lines.write_bytes(b'{"text": "a"}\n{"text": \n{"text": "b"}\n')
    Cleaning([str(lines)], str(tmp_path / "kept.jsonl")).run()
    assert (tmp_path / "kept.jsonl.damaged").read_bytes() == b'{"text": \n'
