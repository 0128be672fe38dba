"""Whether a compressed body comes to its end, whatever it is packed by; bombs cost little."""

import gzip
import time

import pytest

from dedup.page.codings import ENOUGH, is_whole, unpack
from tests.support.packing import PACK

#: Bytes behind the end of the packed ones, which browsers don't look at.
CHECKSUMS = {"gzip": 8, "deflate": 4}


@pytest.mark.parametrize("name", PACK)
def test_a_body_that_was_cut_off_anywhere_is_told(name: str) -> None:
    body = PACK[name](" ".join(map(str, range(20_000))).encode())
    assert is_whole(name, body) is True
    ended = len(body) - CHECKSUMS.get(name, 0)
    assert is_whole(name, body[:ended]) is True
    for end in (len(body) // 3, len(body) // 2, ended - 1):
        assert is_whole(name, body[:end]) is False


@pytest.mark.parametrize("name", PACK)
def test_of_a_bomb_no_more_is_unpacked_than_could_be_judged(name: str) -> None:
    """Else it would be seen that its last part is missing."""
    bomb = PACK[name](bytes(ENOUGH * 3))
    assert is_whole(name, bomb[: len(bomb) * 2 // 3]) is True
    assert is_whole(name, bomb[: len(bomb) // 4]) is False


def test_any_number_of_members_takes_linear_time() -> None:
    body = gzip.compress(b"") * 100_000
    started = time.process_time()
    assert unpack("gzip", body + gzip.compress(b"the end"), 99) == (b"the end", True)
    assert time.process_time() - started < 10


@pytest.mark.parametrize("name", PACK)
def test_what_is_packed_otherwise_is_left_to_scrapy(name: str) -> None:
    assert is_whole(name, b"<p>not packed at all") is True
    assert is_whole("compress", b"?") is None
