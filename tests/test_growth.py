"""Each step of reading a page or an archive takes time in proportion to what it is given, whatever that is made of."""

import gc
import gzip
import itertools
import zlib
from collections import deque
from collections.abc import Callable
from pathlib import Path
from time import thread_time_ns

import pytest

from dedup.contrib.archives.lines import Lines
from dedup.contrib.archives.warc import Warc
from dedup.filter import Counts
from dedup.filter.noise.names import nameless
from dedup.filter.watch.traps import Traps
from dedup.page.data import read_data, read_json
from dedup.page.heading import address_words, place, shared
from dedup.page.html import extract, parse
from dedup.page.ids import strip_ids, strip_session
from dedup.page.limits import unreadable
from dedup.page.links import addresses
from dedup.page.read import read
from dedup.page.shell import is_shell
from dedup.page.urls import folder, join, url_tokens
from dedup.page.walk import walk_in_python
from dedup.page.words import fold_text, split_tokens
from tests.support import counting

#: Eight times as much may take this many times as long: 8 if the time is linear, 64 if it is quadratic.
MOST = 16
serial = itertools.count()


def new(url: str) -> str:
    """An address that no cache knows."""
    return url.replace("?", str(next(serial)), 1)


def grows(step: Callable[[str], object], make: Callable[[int], str], size: int) -> float:
    """How many times as long eight times as much takes: half of `size`, and four times `size`."""

    def nanoseconds(number: int) -> int:
        given = make(number)
        started = thread_time_ns()
        step(given)
        return max(1, thread_time_ns() - started)

    gc.disable()  # what other tests left in memory would be looked through again and again
    try:
        # The shorter, the more often: what disturbs the short one would hide that the long one takes too long.
        short = min(nanoseconds(size // 2) for _ in range(5))
        long = nanoseconds(4 * size)
        for _ in range(20):
            if long <= MOST * short:
                break
            long = min(long, nanoseconds(4 * size))  # what disturbed one run spares another
        return long / short
    finally:
        gc.enable()


def meet_twice(text: str) -> None:
    """Two pages whose address and markup these are, and a digit each."""
    url, _, markup = text.partition(" ")
    page, traps = read(markup, url), Traps(Counts())
    for name in "12":
        traps.meet(f"{url}/{name}", page, kept=True)


def quadratic(text: str) -> int:
    return sum(text.count("x", start) for end in range(0, len(text), 64) for start in range(0, end, 64))


def test_what_is_quadratic_is_seen() -> None:
    assert counting.grows(quadratic, lambda n: "x" * n, 2_000) > counting.MOST


@pytest.mark.slow
def test_what_takes_quadratic_time_is_seen() -> None:
    assert grows(quadratic, lambda n: "x" * n, 2_000) > MOST


STEPS: dict[str, tuple[Callable[[str], object], Callable[[int], str], int]] = {
    "the place of dots": (place, lambda n: new("http://e.org/?.") + "1." * n + ".x.abcdefgh~", 40_000),
    "the place of digits": (place, lambda n: new("http://e.org/?/v") + "1" * n + "/abcdefgh", 40_000),
    "the place of versions": (place, lambda n: new("http://e.org/?") + "/1.1" * n + "/abcdefgh", 20_000),
    "the words of an address": (address_words, lambda n: new("http://e.org/?") + "-a.b" * n, 40_000),
    "shared words": (lambda text: shared(["mock"] * 32, text.split()), lambda n: "moc " * n, 40_000),
    "no session": (strip_session, lambda n: new("http://e.org/?") + ";sid=a" * n, 20_000),
    "ids": (strip_ids, lambda n: new("/?") + ";a9" * n, 20_000),
    "a URL": (lambda url: join("http://e.org/", url), lambda n: new("?") + "/a" * n, 20_000),
    "a URL of half an emoji": (
        lambda url: url_tokens(url, "http://e.org/", folder("http://e.org/")),
        lambda n: new("?\ud83d") + "ä" * n,
        400,
    ),
    "a tag without end": (unreadable, lambda n: "<p" + " a=1" * n, 100_000),
    "words of marks": (split_tokens, lambda n: "a\u0301" * n, 20_000),
    "words of Han": (fold_text, lambda n: "漢字 " * n, 20_000),
    "one word": (fold_text, lambda n: f"{next(serial)}\xe4\u2012" * n, 80_000),
    "JSON": (lambda text: read_json(text, 10**6), lambda n: "[" + '{"a":["b"]},' * n + "1]", 4_000),
    "JSON without end": (
        lambda text: read_data([("application/json", text)]),
        lambda n: '{"a":["b"],' * n,
        9_000,
    ),
    "assignments": (
        lambda text: read_data([("", text)]),
        lambda n: f"__a__={{}};//{next(serial)}\n" * n,
        2_000,
    ),
    "assignments without end": (lambda text: read_data([("", text)]), lambda n: "__a__={" * n, 9_000),
    **{
        f"a program of {part}": (
            lambda text: read_data([("", text)]),
            lambda n, part=part: f"{next(serial)}{part * n}",
            size,
        )  # type: ignore[misc]
        for part, size in [
            *(("x=[/*", 20_000), ("x={'", 4_000), ("x=[", 4_000), ('x={"a":1,', 9_000), ("x=[1,2],", 4_000)),
            *(
                ("write('a<b ", 9_000),
                ("JSON.parse('", 9_000),
                ("timeout_", 20_000),
                ("time:1;", 4_000),
                ("x={a:", 4_000),
            ),
        ]
    },
    "attributes": (
        lambda text: read_data([("@data-a", each) for each in text.split()]),
        lambda n: '{"a":["b"]} x-1 /a ' * n,
        4_000,
    ),
    "empty mounts": (
        lambda text: is_shell(3, parse(text)),
        lambda n: "<app-root></app-root>" * n + "<p id=app>" * n,
        1_500,
    ),
    "links": (lambda text: addresses(parse(text), "http://e.org/"), lambda n: "<a href=a>" * n, 4_000),
    "links in folders": (
        meet_twice,
        lambda n: (
            new("http://e.org/?")
            + "".join(map("/{}x".format, range(n)))
            + " "
            + "".join(map("<a href={}y/>x</a>".format, range(n)))
        ),
        100,
    ),
    "numbers as in the address": (
        lambda text: nameless(text, f"http://e.org/{text[: len(text) // 8]}z"),
        lambda n: "1a" * n,
        9_000,
    ),
    "roles": (
        lambda text: walk_in_python(parse(text), "", True),
        lambda n: "<b role=search>x</b>" * n,
        4_000,
    ),
    "parts": (lambda text: extract(parse(text)), lambda n: "<nav><h1>x</h1></nav>" * n, 4_000),
    "a page cut off": (lambda text: extract(parse(text)), lambda n: "<p>x" * n + "<a href='", 4_000),
    "a comment without end": (
        lambda text: extract(parse(text)),
        lambda n: "<p>x" * n + "<!--" + "--! " * n,
        4_000,
    ),
}


def test_no_step_of_reading_a_page_calls_ever_more() -> None:
    for name, (step, make, size) in STEPS.items():
        assert counting.grows(step, make, size // 100) <= counting.MOST, name


@pytest.mark.slow
@pytest.mark.parametrize("name", STEPS)
def test_a_step_of_reading_a_page_grows_in_proportion(name: str) -> None:
    assert grows(*STEPS[name]) <= MOST


#: A member of gzip whose file name never ends.
NAMELESS = b"\x1f\x8b\x08\x08" + bytes([1] * 6)
CLAIM = b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://e.org/\r\nContent-Length: 16000000\r\n\r\nx\r\n\r\n"


def nested(count: int) -> bytes:
    """Members of gzip that are never closed, each in a stored block of the one before."""
    block = b"\x00\xff\xff\x00\x00"
    return (b"\x1f\x8b\x08\x00" + bytes(6) + block + b'{"url":1}\n') * count


#: What an archive is full of, and how many of it take some milliseconds.
ARCHIVES: dict[str, tuple[type[Lines | Warc], Callable[[int], bytes], int]] = {
    "names without end": (Warc, lambda n: gzip.compress(b"WARC/1.0\r\n\r\n")[:-9] + NAMELESS * n, 1_500),
    "lines in names without end": (Lines, lambda n: NAMELESS * n, 1_500),
    "members in members": (Lines, nested, 400),
    "wrong lengths": (Warc, lambda n: CLAIM * n, 1_000),
    "wrong lengths in one member": (Warc, lambda n: gzip.compress(CLAIM * n, 1), 1_000),
    "empty members": (Lines, lambda n: gzip.compress(b"") * n, 1_500),
    "flushed members": (Lines, lambda n: zlib.compress(b"", wbits=31)[:-8] * n, 1_000),
}


def archive(name: str, folder: Path) -> tuple[Callable[[str], object], Callable[[int], str], int]:
    """A step that reads an archive, what writes one of so many parts, and a number of parts."""
    reader, make, size = ARCHIVES[name]

    def write(number: int) -> str:
        path = folder / str(number)
        path.write_bytes(make(number))
        return str(path)

    return lambda path: deque(reader(Path(path)), 0), write, size


@pytest.fixture
def again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few bytes are looked at again in any case."""
    monkeypatch.setattr("dedup.contrib.archives.streams.AGAIN", 1 << 16)


def test_no_archive_is_read_with_ever_more_calls(tmp_path: Path, again: None) -> None:
    for name in ARCHIVES:
        step, write, size = archive(name, tmp_path)
        assert counting.grows(step, write, size // 10) <= counting.MOST, name


@pytest.mark.slow
@pytest.mark.parametrize("name", ARCHIVES)
def test_reading_an_archive_grows_in_proportion(name: str, tmp_path: Path, again: None) -> None:
    assert grows(*archive(name, tmp_path)) <= MOST
