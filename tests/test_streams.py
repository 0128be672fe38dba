"""Whether a compressed body comes to its end, whatever it is packed by; bombs cost little."""

import pytest

from dedup.scrapy.streams import ENOUGH, is_whole
from tests.support.packing import PACK


@pytest.mark.parametrize("name", PACK)
def test_a_body_that_was_cut_off_anywhere_is_told(name: str) -> None:
    body = PACK[name](" ".join(map(str, range(20_000))).encode())
    assert is_whole(name.encode(), body) is True
    for end in (len(body) // 3, len(body) // 2, len(body) - 1):
        assert is_whole(name.encode(), body[:end]) is False


@pytest.mark.parametrize("name", PACK)
def test_of_a_bomb_no_more_is_unpacked_than_could_be_judged(name: str) -> None:
    """Else it would be seen that its last part is missing."""
    bomb = PACK[name](bytes(ENOUGH * 3))
    assert is_whole(name.encode(), bomb[: len(bomb) * 2 // 3]) is True
    assert is_whole(name.encode(), bomb[: len(bomb) // 4]) is False


@pytest.mark.parametrize("name", PACK)
def test_what_is_packed_otherwise_is_left_to_scrapy(name: str) -> None:
    assert is_whole(name.encode(), b"<p>not packed at all") is True
    assert is_whole(b"compress", b"?") is None
