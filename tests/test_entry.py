"""What an index files of a page: its scope as a number, its id and its URL in a form that every store can hold."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup.index.entry import original_id, scope_mask, storable_id, storable_url
from tests.support.model import SITES
from tests.support.stores import ODD_IDS


@pytest.mark.parametrize("scope", ["all", "host", "site"])
def test_pages_share_a_mask_exactly_when_they_share_a_scope(scope: str) -> None:
    shared = {"all": lambda host: None, "host": lambda host: host, "site": SITES.get}[scope]
    for one, another in combinations(SITES, 2):
        same = scope_mask(scope, f"http://{one}/a") == scope_mask(scope, f"http://{another}/b")
        assert same == (shared(one) == shared(another))


def test_scope_masks_are_those_of_every_earlier_version() -> None:
    assert scope_mask("all", "http://example.org/") == 0
    assert scope_mask("host", "http://Me@Example.org:80/a") == 0x8DC9EB7BA57BAF9
    assert scope_mask("site", "http://www.example.co.uk/") == 0x84F3E1078F68F7F8


#: Texts of which an escape could be made, or mistaken for one.
TRICKY = st.lists(st.sampled_from(["\uffff", "\\", "\ud800", "\\ud800", "u", "d800", "a"])).map("".join)
IDS = st.text(st.characters()) | TRICKY


@given(IDS, IDS)
def test_page_ids_that_differ_still_differ_when_they_can_be_stored(one: str, another: str) -> None:
    stored = [storable_id(page_id) for page_id in (one, another)]
    assert (stored[0] == stored[1]) == (one == another)
    for page_id in stored:
        page_id.encode()


@given(IDS)
def test_a_page_id_is_known_by_what_is_filed(page_id: str) -> None:
    assert original_id(storable_id(page_id)) == page_id


@given(IDS)
def test_the_text_of_an_escape_is_another_page_id(page_id: str) -> None:
    assert storable_id(storable_id(page_id)) != storable_id(page_id) or storable_id(page_id) == page_id


def test_page_ids_that_an_earlier_version_has_filed_are_known() -> None:
    assert storable_id("a\\\ud800") == "\uffffa\\\\\\ud800"
    assert original_id("\uffffas it was") == "\uffffas it was"


def test_odd_page_ids_stay_different() -> None:
    assert len({storable_id(page_id).encode() for page_id in ODD_IDS.values()}) == len(ODD_IDS)


def test_a_url_is_filed_without_its_user() -> None:
    assert storable_url("http://me:secret@example.org/@\udfff") == "http://example.org/@?"
